import { nameKind } from '../../../core/data-names.ts';
import { NAMES } from '../../../core/member-names.ts';
import type { Kind, Place } from './place.ts';

/**
 * Objects of one place that say enough: to trust a name that could be data, when so many of them have it, and to doubt all names
 * that go on changing. A format has many names in its first objects, too.
 */
export const ENOUGH = 20;
const STEADY = 0.9;
/** From so many names on it is asked whether they are data; they must have come in as many different objects. */
const ASKED_AT = 8;
/** Objects under other names each time say it sooner, when those came in so many different ones. */
const FEW = 4;
const SINGLE: readonly Kind[] = ['text', 'integer', 'decimal', 'boolean', 'date', 'timestamp'];

/** Whether the objects at a place are maps: their members are named by data, such as foods or days, not by a format. */
export function isMap(place: Place): boolean {
  return place.isMap || hasMoreData(place) || seemsMap(place) || varies(place);
}

/** Whether names are data since they do not stop coming, or stand for the same thing each time. */
export function seemsMap(place: Place): boolean {
  const { members, kinds } = place;
  if (members === null || members.size < ASKED_AT || kinds.object < FEW) return false;
  if ([...members.keys()].every((name) => NAMES.has(name))) return false;
  return (kinds.object >= ENOUGH && looksEverNew(place)) || (isUniform(place) && mostAreRare(place));
}

/** Whether a name can be a column's: it is no data, or so steady that it cannot be. */
export function isFieldName(name: string, member: Place, around: Place): boolean {
  return nameKind(name) === 'field' || isSteady(member, around);
}

function isSteady({ seen }: Place, { kinds }: Place): boolean {
  return isInNearlyAll(seen, kinds.object);
}

/** There were enough objects, and nearly all of them were seen to have it. */
export function isInNearlyAll(seen: number, objects: number): boolean {
  return objects >= ENOUGH && seen >= objects * STEADY;
}

/** Names that are data outweigh those that must be fields, where there are any. */
function hasMoreData(place: Place): boolean {
  let data = place.values?.seen ?? 0;
  let rare = 0;
  let fields = 0;
  for (const [name, member] of place.members ?? []) {
    if (!isFieldName(name, member, place)) data += member.seen;
    else if (member.seen * 2 < place.kinds.object) rare += member.seen;
    else fields += member.seen;
  }
  return data > 0 && data + rare >= fields;
}

/** Most names were in one object only, or a quarter of many came late: a few in each of many objects, not all in one. */
function looksEverNew({ members, kinds }: Place): boolean {
  const all = [...(members?.values() ?? [])];
  const once = all.filter(({ seen }) => seen === 1);
  if (once.length * 2 >= all.length && arrivals(once) >= ASKED_AT) return true;
  const late = all.filter(({ since }) => since * 2 > kinds.object);
  return all.length >= ENOUGH && late.length * 4 >= all.length && arrivals(late) >= ASKED_AT;
}

/** Few objects have any one of them. */
function mostAreRare({ members, kinds }: Place): boolean {
  const rare = [...(members?.values() ?? [])].filter(({ seen }) => seen * 2 <= kinds.object);
  return rare.length * 2 >= (members?.size ?? 0) && arrivals(rare) >= FEW;
}

/** In how many different objects they were first. */
function arrivals(members: readonly Place[]): number {
  return new Set(members.map(({ since }) => since)).size;
}

/** Objects of the same members under different names, and not always the same names. */
function isUniform(place: Place): boolean {
  const all = [...(place.members?.values() ?? [])];
  if (all.length < 2 || all.every((member) => isSteady(member, place))) return false;
  if (all.some(({ seen, nulls, kinds }) => kinds.object === 0 || kinds.object + nulls !== seen)) return false;
  const names = all.map(({ members }) => [...(members?.keys() ?? [])]);
  const union = new Set(names.flat()).size;
  const shared = names.reduce((sum, own) => sum + own.length, 0) / names.length;
  return union > 0 && shared * 2 >= union;
}

/**
 * Too few objects to know, of the same kind of value under names that they do not all have: `{ann: 1}`, `{bob: 2}`. Whose names
 * those are is not found out by making columns of them.
 */
function varies(place: Place): boolean {
  const { members, kinds } = place;
  const all = [...(members?.values() ?? [])];
  if (kinds.object >= ENOUGH || all.length < 2 || all.every(({ seen }) => seen === kinds.object))
    return false;
  const isSingle = (single: Kind): boolean =>
    all.every((member) => member.kinds[single] + member.nulls === member.seen);
  return SINGLE.some(isSingle) || isUniform(place);
}
