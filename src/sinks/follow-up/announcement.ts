import { hash } from 'node:crypto';
import type { JournalEvent } from '../../core/event.ts';
import type { HistoryResource, Resources } from '../../history/resources.ts';

/** Data of a user that can be fetched now. */
export interface Completion {
  readonly kind: 'range';
  readonly resource: HistoryResource;
  readonly user: string;
  readonly provider: string | null;
  /** As in the event. */
  readonly start: string;
  readonly end: string;
  /** False when more of the same range will be announced. */
  readonly isFinal: boolean;
}

/** A parsing job whose status has changed. */
export interface ChangedJob {
  readonly kind: 'parsing_job';
  readonly user: string | null;
  readonly job: string;
  readonly status: string;
}

/** What an event announces. No operation of the service reads the `what` of an `unreadable` one. */
export type Announcement = Completion | ChangedJob | { readonly kind: 'unreadable'; readonly what: string };

const HISTORICAL = /^historical\.data\.([a-z0-9_]+)\.created$/;
const JOB = 'lab_report.parsing_job.updated';

/** @returns null for any other event; a text that says what is missing in an invalid one */
export function readAnnouncement(
  event: Pick<JournalEvent, 'type' | 'user' | 'body'>,
  resources: Resources,
): Announcement | string | null {
  const { type } = event;
  if (type === JOB) return readJob(event);
  if (!type.startsWith('historical.')) return null;
  const resource = resources.get(HISTORICAL.exec(type)?.[1] ?? '');
  if (resource === undefined) return { kind: 'unreadable', what: type };
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
  return hash('sha256', JSON.stringify(partsOf(announcement)), 'hex').slice(0, 32);
}

function partsOf(announcement: Completion | ChangedJob): unknown[] {
  if (announcement.kind === 'parsing_job')
    return [announcement.user, 'parsing_job', announcement.job, announcement.status];
  const { user, resource, provider, start, end, isFinal } = announcement;
  return [user, resource.name, provider, start, end, ...(isFinal ? [] : ['not final'])];
}
