import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { StorageError, type ObjectStore } from '../../src/core/storage.ts';

/** The port over a map; `fault` decides on each put. */
export class MemoryStore implements ObjectStore {
  readonly url = 's3://made-up/archive';
  readonly objects = new Map<string, Buffer>();
  /** `before`: it fails and nothing is written; `after`: it is written, and the answer is lost. */
  fault: (key: string) => 'before' | 'after' | null = () => null;

  head: ObjectStore['head'] = (key) => Promise.resolve(this.#object(key));
  putIfMatch: ObjectStore['putIfMatch'] = () => Promise.reject(new Error('nothing is replaced'));
  purge: ObjectStore['purge'] = () => Promise.resolve({ removed: 0, kept: [] });
  probe: ObjectStore['probe'] = () => Promise.resolve();
  close: ObjectStore['close'] = () => Promise.resolve();

  async *get(key: string): AsyncGenerator<Buffer> {
    const bytes = this.objects.get(key);
    if (bytes === undefined) throw new StorageError('missing', key);
    yield await Promise.resolve(bytes);
  }

  async *list(prefix: string): ReturnType<ObjectStore['list']> {
    for (const key of [...this.objects.keys()].toSorted()) {
      const object = this.#object(key);
      if (key.startsWith(prefix) && object !== null) yield await Promise.resolve(object);
    }
  }

  async putIfAbsent(...[key, body]: Parameters<ObjectStore['putIfAbsent']>) {
    const fault = this.fault(key);
    await new Promise((resolve) => setImmediate(resolve));
    if (fault === 'before') throw new StorageError('unreachable', key);
    const bytes = 'bytes' in body ? body.bytes : readFileSync(body.file);
    const there = this.objects.get(key);
    if (there !== undefined && !there.equals(bytes)) return { status: 'taken' as const };
    this.objects.set(key, bytes);
    if (fault === 'after') throw new StorageError('unreachable', key);
    return { status: 'written' as const, version: hash('sha256', bytes, 'hex') };
  }

  delete(key: string): Promise<'removed'> {
    this.objects.delete(key);
    return Promise.resolve('removed');
  }

  #object(key: string) {
    const bytes = this.objects.get(key);
    return bytes === undefined
      ? null
      : { key, bytes: bytes.length, version: hash('sha256', bytes, 'hex'), modifiedAt: 0 };
  }
}
