import { nameKind } from './names.ts';
import type { Kind, Place } from './place.ts';

/** What is counted at a place of objects: by whomever. */
interface Counted {
  readonly seen: number;
  readonly nulls: number;
  readonly since: number;
  readonly kinds: { readonly object: number };
  readonly members: ReadonlyMap<string, Counted> | null;
}

/** Objects of one place that say enough to trust a name that could be data, and how many of them must have it. */
const ENOUGH = 20;
const STEADY = 0.9;
const SINGLE: readonly Kind[] = ['text', 'integer', 'decimal', 'boolean', 'date', 'timestamp'];

/** Whether the objects at a place are maps: their members are named by data, such as foods or days, not by a format. */
export function isMap(place: Place): boolean {
  return place.isMap || hasMoreData(place) || looksEverNew(place) || isUniform(place) || varies(place);
}

/** Whether a name can be a column's: it is no data, or so steady that it cannot be. */
export function isFieldName(name: string, member: Place, around: Place): boolean {
  return nameKind(name) === 'field' || isSteady(member, around);
}

/** Nearly every object has it, and there were enough of them. */
function isSteady({ seen }: Counted, { kinds }: Counted): boolean {
  return kinds.object >= ENOUGH && seen >= kinds.object * STEADY;
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

/** Most names were met once only, or new ones do not stop coming. */
export function looksEverNew({ members, kinds }: Counted): boolean {
  const all = [...(members?.values() ?? [])];
  const once = all.filter(({ seen }) => seen === 1).length;
  if (all.length >= 8 && kinds.object >= 4 && once * 2 >= all.length) return true;
  const late = all.filter(({ since }) => since * 2 > kinds.object).length;
  return all.length >= 20 && late * 4 >= all.length;
}

/** Objects of the same members under different names, and not always the same names. */
export function isUniform(place: Counted): boolean {
  const all = [...(place.members?.values() ?? [])];
  if (all.length < 2 || all.every((member) => isSteady(member, place))) return false;
  if (all.some(({ seen, nulls, kinds }) => kinds.object === 0 || kinds.object + nulls !== seen)) return false;
  const names = all.map(({ members }) => [...(members?.keys() ?? [])]);
  const union = new Set(names.flat()).size;
  const shared = names.reduce((sum, own) => sum + own.length, 0) / names.length;
  return union > 0 && shared * 2 >= union;
}

/** Too few objects to know, of single values of one kind, that do not all have the same names: `{ann: 1}`, `{bob: 2}`. */
function varies({ members, kinds }: Place): boolean {
  const all = [...(members?.values() ?? [])];
  if (kinds.object >= ENOUGH || all.length < 2 || all.every(({ seen }) => seen === kinds.object))
    return false;
  return SINGLE.some((single) => all.every((member) => member.kinds[single] + member.nulls === member.seen));
}
