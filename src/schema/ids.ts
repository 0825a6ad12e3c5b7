import type { Envelope } from '../core/event.ts';

export type Ids = Pick<Envelope, 'team' | 'user' | 'clientUser'>;

/** A shorter id is looked for as a whole word: `a` is in most names. */
const LONG = 5;

/** Whether one of the ids is in the name, in whatever case. */
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
