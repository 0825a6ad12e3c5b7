import { type StoredObject, StorageError } from '../../core/storage.ts';
import { objectOf, required } from '../driver.ts';

/** An object of the JSON API. */
export interface Item {
  readonly name?: string;
  readonly size?: string;
  readonly generation?: string;
  readonly updated?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly md5Hash?: string;
  readonly timeDeleted?: string;
  readonly hardDeleteTime?: string;
}

/** A page of a list of objects. */
export interface Listed {
  readonly kind?: string;
  readonly items?: readonly Item[];
  readonly nextPageToken?: string;
}

/** @throws StorageError for an answer that is no list, from a proxy for example: it would read as an empty one */
export function itemsOf({ kind, items = [] }: Listed): readonly Item[] {
  if (kind === 'storage#objects') return items;
  throw new StorageError('unreachable', 'the answer to a request for a list is none');
}

export function stored({ name, size, generation, updated }: Item): StoredObject {
  const bytes = size === undefined ? undefined : Number(size);
  return objectOf(name, bytes, generation, updated === undefined ? undefined : new Date(updated));
}

export function generationOf({ generation }: Item): string {
  return required(generation, 'a generation');
}
