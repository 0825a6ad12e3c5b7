import type { Events } from './events.ts';
import { Refusal } from './refusal.ts';
import { uuidOf, type Name } from './seeded.ts';
import type { Shelf, State } from './state.ts';
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
  /** Sandbox time since when it has its status. */
  since: number;
}

type SavedJob = Omit<ParsingJob, 'user'> & { readonly user: string };

export interface ParsingJobsOptions {
  readonly timers: Timers;
  readonly events: Events;
  readonly users: Users;
  readonly seed: Name;
  readonly state: State;
}

/** Sandbox time of each step; people take longer than machines. */
const STEPS = { upload: SECOND, parsing: 20 * SECOND, review: 3600 * SECOND };

/** Lab report parsing jobs. Nothing is read from a report: results are made up, and an empty report fails. */
export class ParsingJobs {
  readonly #timers: Timers;
  readonly #events: Events;
  readonly #seed: Name;
  readonly #jobs = new Map<string, ParsingJob>();
  readonly #users: Users;
  readonly #state: State;
  readonly #shelf: Shelf<SavedJob>;

  constructor({ timers, events, users, seed, state }: ParsingJobsOptions) {
    this.#timers = timers;
    this.#events = events;
    this.#users = users;
    this.#seed = seed;
    this.#state = state;
    this.#shelf = state.shelf('parsing jobs');
    users.onErased((user) => this.#forget(user));
  }

  /** Goes on with the jobs of an earlier run. */
  restore(): void {
    for (const { user: userId, ...rest } of this.#shelf.all()) {
      const user = this.#users.known(userId);
      if (user === null) continue;
      const job: ParsingJob = { ...rest, user };
      this.#jobs.set(job.id, job);
      this.#follow(job);
    }
  }

  /** @param bytes of the report */
  create(user: User, bytes: number, needsHumanReview: boolean): ParsingJob {
    const job: ParsingJob = {
      id: uuidOf(this.#seed, 'parsing job', this.#state.next('parsing job') - 1),
      user,
      status: 'upload_pending',
      failureReason: null,
      needsHumanReview,
      isReviewed: false,
      bytes,
      since: 0,
    };
    this.#jobs.set(job.id, job);
    this.#events.emit(user, 'lab_report.parsing_job.created', jobJson(job));
    this.#enter(job, 'upload_pending');
    return job;
  }

  /** @throws Refusal 404 */
  get(teamId: string, id: string): ParsingJob {
    const job = this.#jobs.get(id);
    if (job?.user.teamId !== teamId || job.user.erased) throw new Refusal(404, 'Job not found');
    return job;
  }

  #follow(job: ParsingJob): void {
    const then = (ms: number, step: () => void): void => {
      this.#timers.at(job.since + ms, () => {
        if (!job.user.erased) step();
      });
    };
    switch (job.status) {
      case 'upload_pending':
        return then(STEPS.upload, () => this.#enter(job, 'started'));
      case 'started':
        return then(STEPS.parsing, () => this.#parsed(job));
      case 'pending_review':
        return then(STEPS.review, () => {
          job.isReviewed = true;
          this.#move(job, 'completed');
        });
      case 'completed':
      case 'failed':
    }
  }

  #parsed(job: ParsingJob): void {
    if (job.bytes < SMALLEST) {
      job.failureReason = 'The report has no content';
      this.#move(job, 'failed');
    } else this.#move(job, job.needsHumanReview ? 'pending_review' : 'completed');
  }

  #enter(job: ParsingJob, status: ParsingJob['status']): void {
    job.status = status;
    job.since = this.#timers.clock.now();
    const { user, ...rest } = job;
    this.#shelf.put(job.id, { ...rest, user: user.id });
    this.#follow(job);
  }

  /** Customers are told. */
  #move(job: ParsingJob, status: ParsingJob['status']): void {
    this.#enter(job, status);
    this.#events.emit(job.user, 'lab_report.parsing_job.updated', jobJson(job));
  }

  #forget(user: User): void {
    for (const { id } of [...this.#jobs.values()].filter((job) => job.user === user)) {
      this.#jobs.delete(id);
      this.#shelf.delete(id);
    }
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
