import type { Events } from './events.ts';
import { Refusal } from './check.ts';
import { uuidOf, type Name } from './seeded.ts';
import type { Timers } from './timers.ts';
import type { User, Users } from './users.ts';

const SECOND = 1000;

/** `upload_pending` → `started` → `completed`, or `failed`, or `pending_review` → `completed`. */
export interface ParsingJob {
  readonly id: string;
  readonly user: User;
  status: 'upload_pending' | 'started' | 'pending_review' | 'completed' | 'failed';
  failureReason: string | null;
  readonly needsHumanReview: boolean;
  isReviewed: boolean;
  /** Size of the report. */
  readonly bytes: number;
}

interface ParsingJobsOptions {
  readonly timers: Timers;
  readonly events: Events;
  readonly users: Users;
  readonly seed: Name;
}

/** Sandbox milliseconds of each step. */
const STEPS = { upload: SECOND, parsing: 20 * SECOND, review: 3600 * SECOND };

/** Lab report parsing jobs. The results are made up; an empty report fails. */
export class ParsingJobs {
  readonly #world: ParsingJobsOptions;
  readonly #jobs = new Map<string, ParsingJob>();
  #made = 0;

  constructor(world: ParsingJobsOptions) {
    this.#world = world;
    world.users.onErased((user) => {
      for (const job of this.#jobs.values()) if (job.user === user) this.#jobs.delete(job.id);
    });
  }

  /** @param bytes of the report */
  create(user: User, bytes: number, needsHumanReview: boolean): ParsingJob {
    const { seed, events } = this.#world;
    const job: ParsingJob = {
      id: uuidOf(seed, 'parsing job', this.#made),
      user,
      status: 'upload_pending',
      failureReason: null,
      needsHumanReview,
      isReviewed: false,
      bytes,
    };
    this.#made += 1;
    this.#jobs.set(job.id, job);
    events.emit(user, 'lab_report.parsing_job.created', jobJson(job));
    this.#after(job, STEPS.upload, () => {
      job.status = 'started';
      this.#after(job, STEPS.parsing, () => this.#parsed(job));
    });
    return job;
  }

  /** @throws Refusal 404 */
  get(teamId: string, id: string): ParsingJob {
    const job = this.#jobs.get(id);
    if (job?.user.teamId !== teamId || job.user.erased) throw new Refusal(404, 'Job not found');
    return job;
  }

  #parsed(job: ParsingJob): void {
    if (job.bytes < SMALLEST_BYTES) {
      job.failureReason = 'invalid_input';
      return this.#move(job, 'failed');
    }
    if (!job.needsHumanReview) return this.#move(job, 'completed');
    this.#move(job, 'pending_review');
    this.#after(job, STEPS.review, () => {
      job.isReviewed = true;
      this.#move(job, 'completed');
    });
  }

  #after(job: ParsingJob, ms: number, step: () => void): void {
    this.#world.timers.after(ms, () => {
      if (!job.user.erased) step();
    });
  }

  #move(job: ParsingJob, status: ParsingJob['status']): void {
    job.status = status;
    this.#world.events.emit(job.user, 'lab_report.parsing_job.updated', jobJson(job));
  }
}

/** A smaller file has hardly more than its magic number. */
const SMALLEST_BYTES = 16;

export function jobJson(job: ParsingJob): object {
  return {
    id: job.id,
    user_id: job.user.id,
    team_id: job.user.teamId,
    status: job.status,
    failure_reason: job.failureReason,
    data: job.status === 'completed' ? { metadata: METADATA, results: RESULTS } : null,
    needs_human_review: job.needsHumanReview,
    is_reviewed: job.isReviewed,
  };
}

const METADATA = {
  patient_first_name: 'Made',
  patient_last_name: 'Up',
  dob: '1990-01-01',
  gender: 'other',
  lab_name: 'made_up_lab_1',
  date_reported: '2026-01-03',
  date_collected: '2026-01-01',
  specimen_number: 'MADE-UP-1',
};

const RESULTS = [1, 2, 3].map((n) => ({
  test_name: `Made-up marker ${n}`,
  value: String(n * 10.5),
  units: 'mg/dL',
  max_reference_range: n * 20,
  min_reference_range: n,
  sample_type: 'serum_plasma_blood',
  interpretation: 'normal',
  loinc_matches: [
    { loinc_code: `${90_000 + n}-${n}`, loinc_name: `Made-up marker ${n}`, confidence_score: 0.9 },
  ],
}));
