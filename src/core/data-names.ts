import type { Envelope } from './event.ts';

/** The ids of an event. */
export type Ids = Omit<Envelope, 'type'>;

/** A shorter id must be a whole word: `a` is in most names. */
const LONG = 5;

/** Whether one of the ids is in the name, in any case. */
export function namesAnId(name: string, { team, user, clientUser }: Ids): boolean {
  const lower = name.toLowerCase();
  for (const id of [team, user, clientUser]) {
    if (id === null || id === '' || id.length > name.length) continue;
    const wanted = id.toLowerCase();
    if (lower === wanted || (id.length >= LONG && lower.includes(wanted))) return true;
    if (id.length < LONG && lower.split(/[^\p{L}\p{N}]+/u).includes(wanted)) return true;
  }
  return false;
}

/** The name of a member is a field, or data: the name of a food, an id, a day. Data never becomes the name of a column. */
export type NameKind = 'field' | 'doubtful' | 'data';

const LONGEST_FIELD = 64;

export function nameKind(name: string): NameKind {
  if (name.length > LONGEST_FIELD || !/^[A-Za-z_$][\w$.:-]*$/.test(name)) return 'data';
  if (/\d{4}/.test(name) || looksRandom(name)) return 'data';
  return /^[a-z_$][A-Za-z0-9_]*$/.test(name) ? 'field' : 'doubtful';
}

/** UUIDs, ULIDs, hashes: long, with digits in several places. */
function looksRandom(name: string): boolean {
  return name.length >= 16 && (name.match(/\d/g)?.length ?? 0) >= 3 && (name.match(/\d+/g)?.length ?? 0) >= 2;
}

/** A type for metrics and traces: a part that is data, or names an id of the event, is `*`, as in `raw.*.created`. */
export function typeWithoutData(type: string, ids: Ids): string {
  return type
    .split('.')
    .map((part) => (nameKind(part) === 'data' || namesAnId(part, ids) ? '*' : part))
    .join('.');
}
