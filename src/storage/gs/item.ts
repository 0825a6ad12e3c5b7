import { type StoredObject, StorageError } from '../../core/storage.ts';

/** An object, as the JSON API writes it. */
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

/** A list of objects, or a part of it. */
export interface Listed {
  readonly kind?: string;
  readonly items?: readonly Item[];
  readonly nextPageToken?: string;
}

/** @throws StorageError for what is no list, such as the answer of a proxy: it would read as an empty one */
export function itemsOf({ kind, items = [] }: Listed): readonly Item[] {
  if (kind === 'storage#objects') return items;
  throw new StorageError('unreachable', 'the answer to a request for a list is none');
}

export function stored(item: Item): StoredObject {
  const modifiedAt = Date.parse(item.updated ?? '');
  return {
    key: item.name ?? '',
    bytes: Number(item.size ?? 0),
    version: generationOf(item),
    modifiedAt: Number.isNaN(modifiedAt) ? 0 : modifiedAt,
  };
}

export function generationOf({ generation }: Item): string {
  if (generation === undefined) throw new StorageError('unreachable', 'an answer without a generation');
  return generation;
}
