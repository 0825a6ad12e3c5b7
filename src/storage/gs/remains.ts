import { StorageError } from '../../core/storage.ts';
import type { Remains } from '../driver.ts';
import type { GoogleClient } from './client.ts';
import { faultOf } from './fault.ts';
import { generationOf, type Item, itemsOf, type Listed } from './item.ts';

/** Generations that are not live, and soft-deleted ones, which only the service removes. */
export async function remainsOf(
  client: GoogleClient,
  objects: string,
  key: string,
  signal: AbortSignal,
): Promise<Remains[]> {
  const asking = { path: objects, signal };
  const named = { prefix: key, endOffset: `${key}\0` };
  const versions = await client.json<Listed>({ ...asking, query: { ...named, versions: 'true' } });
  const old = itemsOf(versions).filter(({ name, timeDeleted }) => name === key && timeDeleted !== undefined);
  return [
    ...old.map((item) => oldGeneration(client, `${objects}/${encodeURIComponent(key)}`, item)),
    ...(await softDeleted()),
  ];

  async function softDeleted(): Promise<Remains[]> {
    try {
      const deleted = await client.json<Listed>({ ...asking, query: { ...named, softDeleted: 'true' } });
      return itemsOf(deleted)
        .filter(({ name, hardDeleteTime }) => name === key && hardDeleteTime !== undefined)
        .map(softDeletedItem);
    } catch (error) {
      // A bucket without soft delete has no such listing.
      if (faultOf(error).fault === 'invalid') return [];
      throw error;
    }
  }
}

function oldGeneration(client: GoogleClient, path: string, item: Item): Remains {
  const generation = generationOf(item);
  return {
    name: `generation ${generation} of ${item.updated}`,
    remove: async (signal) => {
      await client.ask({ method: 'DELETE', path, query: { generation }, fine: [404], signal });
    },
  };
}

function softDeletedItem(item: Item): Remains {
  const why = `soft-deleted, kept until ${item.hardDeleteTime}; the bucket’s soft delete policy says how long`;
  return {
    name: `generation ${generationOf(item)}`,
    remove: () => Promise.reject(new StorageError('denied', why)),
  };
}
