import type { ArchiveItem } from '../archive/read.ts';
import { membersOf } from '../lib/json-text.ts';
import { TABLES } from '../warehouse/tables.ts';

/** Where the documents of a table stand in an archive. */
interface Origin {
  /** Beginning of the event types that carry them. */
  readonly prefix: string;
  /** Member of the body that is the document; null when the whole record is. */
  readonly member: string | null;
}

/** By the table whose documents they are. `historical.data.*` is no source: such an event carries no data. */
const ORIGINS: Readonly<Record<string, Origin>> = {
  events: { prefix: '', member: null },
  meals: { prefix: 'daily.data.meal.', member: 'data' },
  orders: { prefix: 'labtest.order.', member: 'data' },
  parsing_jobs: { prefix: 'lab_report.parsing_job.', member: 'data' },
};

/** The tables that an archive can be exported to; the others are made of the service's answers, not of events. */
export const EXPORTABLE: readonly string[] = [...TABLES.values()].flatMap(({ definition, document }) =>
  document.name in ORIGINS ? [definition.name] : [],
);

/** @param table one of `EXPORTABLE` */
export function originOf(table: string): Origin {
  const origin = ORIGINS[TABLES.get(table)?.document.name ?? ''];
  if (origin === undefined) throw new TypeError(`${table} is not made of events`);
  return origin;
}

/**
 * The document of a record; null when the body has none there.
 * @throws JsonFault when the body is not JSON up to there
 */
export function documentOf({ text, body }: ArchiveItem & { kind: 'record' }, origin: Origin): Buffer | null {
  return origin.member === null ? text : memberOf(body, origin.member);
}

/** The bytes of a member of the object that `bytes` are; of the last one when it is repeated. */
export function memberOf(bytes: Buffer, name: string): Buffer | null {
  let found: Buffer | null = null;
  for (const { name: key, value } of membersOf(bytes, 0))
    if (JSON.parse(bytes.toString('utf8', ...key)) === name) found = bytes.subarray(...value);
  return found;
}
