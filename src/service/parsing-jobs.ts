import type { ReadOptions } from './options.ts';
import { text } from './inputs.ts';
import { Group, type Open, type Unknown } from './shape.ts';

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
  async get(job: string, options: ReadOptions = {}): Promise<ParsingJob> {
    const parameters = { job_id: text('job', job) };
    return this.readObject<ParsingJob>({ method: 'GET', path: 'parsingJob', parameters, ...options });
  }
}
