import { Blob } from 'node:buffer';
import { FormData } from 'undici';
import type { CallOptions, ReadOptions } from './options.ts';
import { text, uuid } from './inputs.ts';
import { ServiceInputError } from './errors.ts';
import { Group, type Open, type Unknown } from './shape.ts';

/** The limit of a report file. */
const LARGEST_REPORT = 10_000_000;

/** Formats the service reads, known by their first bytes: a file's name proves nothing. */
const FORMATS = [
  { type: 'application/pdf', magic: Buffer.from('%PDF-') },
  { type: 'image/jpeg', magic: Buffer.from([0xff, 0xd8, 0xff]) },
  { type: 'image/png', magic: Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) },
] as const;

export interface ReportUpload {
  readonly userId: string;
  /** A PDF, JPEG or PNG of at most 10 MB. */
  readonly file: Uint8Array;
  /** Default `report`. */
  readonly fileName?: string;
  /** Ask for a person to look at it before it completes. */
  readonly needsHumanReview?: boolean;
}

/** A report on its way to biomarkers. Fields are not documented; these are usual. */
export interface ParsingJob extends Unknown {
  readonly id: string;
  readonly status: Open<'upload_pending' | 'started' | 'completed' | 'failed' | 'pending_review'>;
  readonly failure_reason?: string | null;
  readonly data?: (Unknown & { readonly results?: readonly Unknown[] }) | null;
  readonly needs_human_review?: boolean;
  readonly is_reviewed?: boolean;
}

/** Lab report parsing; in beta, and enabled per team. */
export class ParsingJobs extends Group {
  /** Not repeated after a lost connection: the job may be there already. @throws ServiceError, ServiceInputError */
  async create(upload: ReportUpload, options: CallOptions = {}): Promise<ParsingJob> {
    const { userId, file, fileName = 'report', needsHumanReview } = upload;
    const type = formatOf(file);
    uuid('userId', userId);
    text('fileName', fileName, 255);
    const form = (): FormData => {
      const data = new FormData();
      data.set('file', new Blob([file], { type }), fileName);
      data.set('user_id', userId);
      if (needsHumanReview !== undefined) data.set('needs_human_review', String(needsHumanReview));
      return data;
    };
    return this.readObject<ParsingJob>({ method: 'POST', path: 'createParsingJob', form, ...options });
  }

  async get(job: string, options: ReadOptions = {}): Promise<ParsingJob> {
    const parameters = { job_id: text('job', job) };
    return this.readObject<ParsingJob>({ method: 'GET', path: 'parsingJob', parameters, ...options });
  }
}

/** @throws ServiceInputError when it is too large or of another format */
function formatOf(file: Uint8Array): string {
  if (file.byteLength > LARGEST_REPORT) {
    throw new ServiceInputError('file', `must be at most 10 MB, has ${file.byteLength} bytes`);
  }
  const format = FORMATS.find(({ magic }) => magic.equals(file.subarray(0, magic.length)));
  if (format === undefined)
    throw new ServiceInputError('file', 'is not a PDF, JPEG or PNG by its first bytes');
  return format.type;
}
