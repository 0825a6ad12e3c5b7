import { nameKind } from '../../../core/data-names.ts';
import { snakeCase } from './names.ts';

/** What happened to a thing, at the end of a type; it is the same thing in all of them. */
const VERBS = new Set(['created', 'updated', 'changed', 'deleted']);

/** Which events are one table. */
export interface EventGroup {
  /** Beginning of their types. */
  readonly prefix: string;
  /** The table's name, short and long: whichever is free. */
  readonly names: readonly [string, string];
  /** Whether the types can be named; ids in them cannot. */
  readonly isNamed: boolean;
}

/**
 * The group an event type belongs to: `daily.data.sleep.created` to `daily.data.sleep.`, whose table is `sleep`. Null for a
 * type that begins with data.
 */
export function groupOf(type: string): EventGroup | null {
  const all = type.split('.');
  const data = all.findIndex((segment) => nameKind(segment) === 'data');
  if (data === 0) return null;
  const hasVerb = all.length > 1 && VERBS.has(all.at(-1) ?? '');
  const segments = data > 0 ? all.slice(0, data) : hasVerb ? all.slice(0, -1) : all;
  const isDaily = segments[0] === 'daily' && segments[1] === 'data' && segments.length > 2;
  return {
    prefix: segments.length < all.length ? `${segments.join('.')}.` : type,
    names: [snakeCase(segments.slice(isDaily ? 2 : 0).join('_')), snakeCase(segments.join('_'))],
    isNamed: data === -1,
  };
}
