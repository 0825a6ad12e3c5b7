import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';

/** Data of a user that is there to be fetched now. */
export interface Completion {
  readonly kind: 'range';
  readonly resource: string;
  readonly user: string;
  readonly provider: string | null;
  /** As the event says them. */
  readonly start: string;
  readonly end: string;
  /** False: more of the same range is going to be announced. */
  readonly isFinal: boolean;
}

/** A parsing job that is not what it was. */
export interface ChangedJob {
  readonly kind: 'parsing_job';
  readonly user: string | null;
  readonly job: string;
  readonly status: string;
}

/** What an event calls for. Of `unreadable` ones nothing can be fetched: no operation reads `what`. */
export type Announcement = Completion | ChangedJob | { readonly kind: 'unreadable'; readonly what: string };

const HISTORICAL = /^historical\.data\.([a-z0-9_]+)\.created$/;
const JOB = 'lab_report.parsing_job.updated';
/** Ranges of these are read by an operation of the service. */
const READABLE: ReadonlySet<string> = new Set(['meal']);

/** Null for any other event; a text that says what is missing for one that cannot be followed. */
export function readAnnouncement(
  event: Pick<JournalEvent, 'type' | 'user' | 'body'>,
): Announcement | string | null {
  const { type } = event;
  if (type === JOB) return readJob(event);
  if (!type.startsWith('historical.')) return null;
  const resource = HISTORICAL.exec(type)?.[1];
  if (resource === undefined || !READABLE.has(resource)) return { kind: 'unreadable', what: type };
  const { user_id: user, start_date: start, end_date: end, provider, is_final } = dataOf(event);
  if (typeof user !== 'string') return 'data.user_id is missing';
  if (typeof start !== 'string' || typeof end !== 'string')
    return 'data.start_date or data.end_date is missing';
  const source = typeof provider === 'string' ? provider : null;
  return { kind: 'range', resource, user, provider: source, start, end, isFinal: is_final !== false };
}

function readJob(event: Pick<JournalEvent, 'user' | 'body'>): ChangedJob | string {
  const { id: job, status } = dataOf(event);
  if (typeof job !== 'string' || job === '') return 'data.id is missing';
  if (typeof status !== 'string') return 'data.status is missing';
  return { kind: 'parsing_job', user: event.user, job, status };
}

function dataOf({ body }: Pick<JournalEvent, 'body'>): Readonly<Record<string, unknown>> {
  const { data } = JSON.parse(body.toString()) as { data?: Record<string, unknown> | null };
  return data ?? {};
}

/** The same for every repetition of one announcement, whatever the delivery's id. */
export function keyOf(announcement: Completion | ChangedJob): string {
  const parts = announcement.kind === 'range' ? rangeOf(announcement) : jobOf(announcement);
  return hash('sha256', JSON.stringify(parts), 'hex').slice(0, 32);
}

function rangeOf({ user, resource, provider, start, end, isFinal }: Completion): unknown[] {
  return [user, resource, provider, start, end, ...(isFinal ? [] : ['not final'])];
}

function jobOf({ user, job, status }: ChangedJob): unknown[] {
  return [user, 'parsing_job', job, status];
}
