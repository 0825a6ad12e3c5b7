import type { Events } from './events.ts';
import { Refusal } from './refusal.ts';
import { uuidOf, type Name } from './seeded.ts';
import type { Timers } from './timers.ts';
import type { User } from './users.ts';

const SECOND = 1000;

/** `upload_pending` → `started` → `completed`, or `failed`, or `pending_review` → `completed`. */
export interface ParsingJob {
  readonly id: string;
  readonly user: User;
  status: 'upload_pending' | 'started' | 'pending_review' | 'completed' | 'failed';
  failureReason: string | null;
  readonly needsHumanReview: boolean;
  isReviewed: boolean;
}

/** Sandbox time of each step; people take longer than machines. */
const STEPS = { upload: SECOND, parsing: 20 * SECOND, review: 3600 * SECOND };

export interface Report {
  readonly file: Buffer;
  readonly needsHumanReview: boolean;
}

/** Lab report parsing jobs. Nothing is read from a report: results are made up, and an empty report fails. */
export class ParsingJobs {
  readonly #timers: Timers;
  readonly #events: Events;
  readonly #seed: Name;
  readonly #jobs = new Map<string, ParsingJob>();

  constructor(timers: Timers, events: Events, seed: Name) {
    this.#timers = timers;
    this.#events = events;
    this.#seed = seed;
  }

  create(user: User, { file, needsHumanReview }: Report): ParsingJob {
    const job: ParsingJob = {
      id: uuidOf(this.#seed, 'parsing job', this.#jobs.size),
      user,
      status: 'upload_pending',
      failureReason: null,
      needsHumanReview,
      isReviewed: false,
    };
    this.#jobs.set(job.id, job);
    this.#events.emit(user, 'lab_report.parsing_job.created', jobJson(job));
    this.#timers.after(STEPS.upload, () => {
      job.status = 'started';
    });
    this.#timers.after(STEPS.upload + STEPS.parsing, () => this.#parsed(job, file.length));
    return job;
  }

  /** @throws Refusal 404 */
  get(teamId: string, id: string): ParsingJob {
    const job = this.#jobs.get(id);
    if (job?.user.teamId !== teamId || job.user.erased) throw new Refusal(404, 'Job not found');
    return job;
  }

  #parsed(job: ParsingJob, bytes: number): void {
    if (bytes < SMALLEST) {
      job.failureReason = 'The report has no content';
      this.#move(job, 'failed');
      return;
    }
    if (!job.needsHumanReview) {
      this.#move(job, 'completed');
      return;
    }
    this.#move(job, 'pending_review');
    this.#timers.after(STEPS.review, () => {
      job.isReviewed = true;
      this.#move(job, 'completed');
    });
  }

  #move(job: ParsingJob, status: ParsingJob['status']): void {
    if (job.user.erased) return;
    job.status = status;
    this.#events.emit(job.user, 'lab_report.parsing_job.updated', jobJson(job));
  }
}

/** Bytes; a file that is hardly more than its magic number holds no report. */
const SMALLEST = 16;

export function jobJson(job: ParsingJob): object {
  return {
    id: job.id,
    user_id: job.user.id,
    team_id: job.user.teamId,
    status: job.status,
    failure_reason: job.failureReason,
    data: job.status === 'completed' ? { metadata: { lab_name: 'made_up_lab_1' }, results: RESULTS } : null,
    needs_human_review: job.needsHumanReview,
    is_reviewed: job.isReviewed,
  };
}

const RESULTS = [1, 2, 3].map((n) => ({
  test_name: `Made-up marker ${n}`,
  value: String(n * 10.5),
  units: 'mg/dL',
  max_reference_range: n * 20,
  min_reference_range: n,
  interpretation: 'normal',
  loinc_matches: [
    { loinc_code: `${90_000 + n}-${n}`, loinc_name: `Made-up marker ${n}`, confidence_score: 0.9 },
  ],
}));
