import { isUniform } from '../warehouse/learned/infer/maps.ts';
import { NAMES } from '../core/member-names.ts';
import type { Field } from './field.ts';

/** From so many names on it is asked whether they are data; they must have come in as many different objects. */
const ASKED_AT = 8;
/** Before so many objects nothing says that names go on changing: a format has many names in its first, too. */
const ENOUGH = 20;
/** Objects under other names each time say it sooner, when those came in so many different ones. */
const FEW = 4;

/** Whether names are data since they do not stop coming, or stand for the same thing each time. */
export function seemsMap(field: Field): boolean {
  const { members, kinds } = field;
  if (members === null || members.size < ASKED_AT || kinds.object < FEW) return false;
  if ([...members.keys()].every((name) => NAMES.has(name))) return false;
  return (kinds.object >= ENOUGH && looksEverNew(field)) || (isUniform(field) && mostAreRare(field));
}

/** Most names were in one object only, or a quarter of many came late: a few in each of many objects, not all in one. */
function looksEverNew({ members, kinds }: Field): boolean {
  const all = [...(members?.values() ?? [])];
  const once = all.filter(({ seen }) => seen === 1);
  if (once.length * 2 >= all.length && arrivals(once) >= ASKED_AT) return true;
  const late = all.filter(({ since }) => since * 2 > kinds.object);
  return all.length >= 20 && late.length * 4 >= all.length && arrivals(late) >= ASKED_AT;
}

/** Few objects have any one of them. */
function mostAreRare({ members, kinds }: Field): boolean {
  const rare = [...(members?.values() ?? [])].filter(({ seen }) => seen * 2 <= kinds.object);
  return rare.length * 2 >= (members?.size ?? 0) && arrivals(rare) >= FEW;
}

/** In how many different objects they were first. */
function arrivals(fields: readonly Field[]): number {
  return new Set(fields.map(({ since }) => since)).size;
}
