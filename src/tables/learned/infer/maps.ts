import { nameKind } from '../../../core/data-names.ts';
import { NAMES } from '../../../core/member-names.ts';
import type { Kind, SeenField } from './seen-field.ts';

/** With so many objects of one field, a name that nearly all have is trusted, and names that keep changing are doubted. */
export const ENOUGH = 20;
const STEADY = 0.9;
/** From so many names on they can be data; they must have first come in as many different objects. */
const ASKED_AT = 8;
/** The same for objects of the same members under changing names. */
const FEW = 4;
const SINGLE: readonly Kind[] = ['text', 'integer', 'decimal', 'boolean', 'date', 'timestamp'];

/** True for maps: objects whose members are named by data, such as foods or days, not by a format. */
export function isMap(place: SeenField): boolean {
  return place.isMap || hasMoreData(place) || seemsMap(place) || varies(place);
}

/** True when new names keep coming, or when changing names stand for objects of the same members. */
export function seemsMap(place: SeenField): boolean {
  const { members, kinds } = place;
  if (members === null || members.size < ASKED_AT || kinds.object < FEW) return false;
  if ([...members.keys()].every((name) => NAMES.has(name))) return false;
  return (kinds.object >= ENOUGH && looksEverNew(place)) || (isUniform(place) && mostAreRare(place));
}

/** True for a name that is no data, or that nearly all objects have. */
export function isFieldName(name: string, member: SeenField, around: SeenField): boolean {
  return nameKind(name) === 'field' || isSteady(member, around);
}

function isSteady({ seen }: SeenField, { kinds }: SeenField): boolean {
  return isInNearlyAll(seen, kinds.object);
}

/** True when there were enough objects, and nearly all have it. */
export function isInNearlyAll(seen: number, objects: number): boolean {
  return objects >= ENOUGH && seen >= objects * STEADY;
}

/** True when more members have names that are data than names that must be fields. */
function hasMoreData(place: SeenField): boolean {
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

/** True when most names were in one object only, or a quarter of many came late, spread over many objects. */
function looksEverNew({ members, kinds }: SeenField): boolean {
  const all = [...(members?.values() ?? [])];
  const once = all.filter(({ seen }) => seen === 1);
  if (once.length * 2 >= all.length && arrivals(once) >= ASKED_AT) return true;
  const late = all.filter(({ since }) => since * 2 > kinds.object);
  return all.length >= ENOUGH && late.length * 4 >= all.length && arrivals(late) >= ASKED_AT;
}

/** True when most names are in less than half of the objects. */
function mostAreRare({ members, kinds }: SeenField): boolean {
  const rare = [...(members?.values() ?? [])].filter(({ seen }) => seen * 2 <= kinds.object);
  return rare.length * 2 >= (members?.size ?? 0) && arrivals(rare) >= FEW;
}

/** Number of different objects in which members were first seen. */
function arrivals(members: readonly SeenField[]): number {
  return new Set(members.map(({ since }) => since)).size;
}

/** True for objects of the same members under names that not all objects have. */
function isUniform(place: SeenField): boolean {
  const all = [...(place.members?.values() ?? [])];
  if (all.length < 2 || all.every((member) => isSteady(member, place))) return false;
  if (all.some(({ seen, nulls, kinds }) => kinds.object === 0 || kinds.object + nulls !== seen)) return false;
  const names = all.map(({ members }) => [...(members?.keys() ?? [])]);
  const union = new Set(names.flat()).size;
  const shared = names.reduce((sum, own) => sum + own.length, 0) / names.length;
  return union > 0 && shared * 2 >= union;
}

/**
 * True for too few objects to decide, with the same kind of value under names that not all of them have: `{ann: 1}`, `{bob: 2}`.
 * Columns could be named after people.
 */
function varies(place: SeenField): boolean {
  const { members, kinds } = place;
  const all = [...(members?.values() ?? [])];
  if (kinds.object >= ENOUGH || all.length < 2 || all.every(({ seen }) => seen === kinds.object))
    return false;
  const isSingle = (single: Kind): boolean =>
    all.every((member) => member.kinds[single] + member.nulls === member.seen);
  return SINGLE.some(isSingle) || isUniform(place);
}
