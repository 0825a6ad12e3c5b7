import { deepEqual } from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { MANIFEST } from '../../src/core/archive.ts';
import type { FileReader } from '../../src/replay/read-file.ts';
import type { FileUnit } from '../../src/replay/unit.ts';
import { openStore } from '../../src/storage/open.ts';
import { erasing } from '../privacy/erase/objects-support.ts';
import {
  eraseNow,
  erasuresOver,
  eventOf,
  find,
  folderStore,
  secretOf,
  userId,
} from '../privacy/erase/support.ts';
import { exported } from '../export/support.ts';
import { filesOf, listing, readerOf, readUnits, unitsOf } from '../replay/support.ts';
import { batchOf, writeFiles } from '../support/archives.ts';
import { seededRandom } from '../support/random.ts';
import {
  compacted,
  idsInFiles,
  idsRead,
  nameOf,
  pathOf,
  placesOf,
  verified,
  type Kind,
} from './compact-support.ts';
import { chained, put, segmentName } from './store-archive.ts';

const STEPS = ['read', 'put', 'listed', 'removed'] as const;
const USERS = [1, 2, 3, 4, 5];

/** What happens to an archive, and what must be in it. */
export class History {
  readonly kind: Kind;
  readonly root: string;
  readonly random: () => number;
  /** Ids that were accepted and are not erased: kept here, and read from nowhere. */
  readonly expected = new Set<string>();
  readonly erased = new Set<number>();
  /** A list of files that a replay has made, and the ids that were in them. */
  snapshot: { units: FileUnit[]; ids: string[]; reader: FileReader } | null = null;
  readonly log: string[] = [];
  #next = 0;

  constructor(root: string, kind: Kind, seed: number) {
    this.root = root;
    this.kind = kind;
    this.random = seededRandom(seed);
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.random() * from.length)] as T;
  }

  async step(): Promise<void> {
    const [name, work] = this.#pick([
      ['add', () => this.add()],
      ['add', () => this.add()],
      ['compact', () => this.compact()],
      ['compact', () => this.compact()],
      ['interrupted', () => this.interrupted()],
      ['interrupted', () => this.interrupted()],
      ['erase', () => this.erase()],
      ['export', () => this.export()],
      ['export', () => this.export()],
      ['list', () => this.list()],
      ['replay', () => this.replay()],
    ] as const);
    this.log.push(name);
    await work();
    deepEqual(await idsRead(this.root, this.kind), [...this.expected].toSorted());
    deepEqual(await verified(this.root, this.kind), []);
  }

  /** A receiver writes some small files, and ends. */
  async add(): Promise<void> {
    const users = USERS.filter((user) => !this.erased.has(user));
    const path = this.kind === 'folder' ? pathOf(this.root, 'folder') : mkdtempSync(join(this.root, 'made-'));
    const compress = this.#pick(['gzip', 'none']);
    const batches = Array.from({ length: 1 + Math.floor(this.random() * 3) }, () => {
      const n = (this.#next += 1);
      return batchOf(...users.map((user) => eventOf(user, n, { headers: {} })));
    });
    await writeFiles(path, batches, { options: { compress, rotate: { bytes: 1024 } } });
    for (const { event } of batches.flat()) this.expected.add(event.id);
    if (this.kind === 's3') await this.#upload(path);
  }

  async #upload(path: string): Promise<void> {
    const store = await openStore(pathOf(this.root, 's3'));
    const lines = readFileSync(join(path, MANIFEST), 'utf8').trimEnd().split('\n');
    const parsed = lines.map((line) => JSON.parse(line) as { readonly file: string });
    for (const { file } of parsed) await put(store, file, readFileSync(join(path, file)));
    const writer = randomBytes(6).toString('hex');
    await put(store, segmentName(writer, 1, lines.length), `${chained(parsed).join('\n')}\n`);
    rmSync(path, { recursive: true });
  }

  async compact(): Promise<void> {
    if (this.expected.size === 0) return;
    const report = await compacted(this.root, this.kind, { targetBytes: this.#pick([900, 2048, 2 ** 20]) });
    deepEqual([report.reported, report.complete], [[], true]);
    // Nothing is left of what was replaced: who asks no manifest reads each event once, too.
    deepEqual(idsInFiles(this.root, this.kind), [...this.expected].toSorted());
  }

  async interrupted(): Promise<void> {
    if (this.expected.size === 0) return;
    const step = this.#pick(STEPS);
    let left = 1 + Math.floor(this.random() * 3);
    const ended = await compacted(this.root, this.kind, {
      targetBytes: this.#pick([900, 2048, 2 ** 20]),
      onStep: (now) => {
        if (now === step && (left -= 1) === 0) throw new Error('ended here');
      },
    }).catch((error: unknown) => (error as Error).message);
    if (typeof ended === 'string') deepEqual(ended, 'ended here');
    this.log.push(`at ${step}`);
  }

  async erase(): Promise<void> {
    const user = this.#pick(USERS);
    const folder = join(this.root, 'erasure');
    const erasures =
      this.kind === 's3'
        ? erasing(folder, pathOf(this.root, 's3'))
        : erasuresOver(folder, [folderStore(pathOf(this.root, 'folder'))]).erasures;
    deepEqual((await eraseNow(erasures, user)).left, []);
    this.erased.add(user);
    for (const id of this.expected) if (id.startsWith(`msg_${user}_`)) this.expected.delete(id);
    // What it was read for may be gone.
    this.snapshot = null;
    deepEqual(find([pathOf(this.root, this.kind)], [userId(user), secretOf(user)]), []);
  }

  async export(): Promise<void> {
    if (this.expected.size === 0) return;
    const out = join(this.root, 'out');
    const places = placesOf(this.root);
    const summary = await exported([nameOf(this.root, this.kind)], out, {
      places,
      format: 'ndjson',
      stepBytes: this.#pick([1024, 2 ** 20]),
    });
    await places.close();
    deepEqual([summary.messages, summary.complete], [[], true]);
    const rows = readdirSync(join(out, 'events'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .flatMap(({ parentPath, name }) =>
        String(gunzipSync(readFileSync(join(parentPath, name))))
          .trimEnd()
          .split('\n'),
      );
    const ids = rows.map((row) => /"(?:_event_)?id":"(msg_\d+_\d+)"/.exec(row)?.[1] ?? row);
    deepEqual(ids.toSorted(), [...this.expected].toSorted());
  }

  /** Lists what a replay will read, later. */
  async list(): Promise<void> {
    const places = placesOf(this.root);
    const name = nameOf(this.root, this.kind);
    const units = this.expected.size > 0 ? filesOf(await unitsOf(name, listing(places))) : [];
    const again = this.random() < 0.5 ? placesOf(this.root) : places;
    const reader = readerOf({ places: again, onChanged: () => undefined });
    this.snapshot = { units, ids: [...this.expected].toSorted(), reader };
  }

  async replay(): Promise<void> {
    if (this.snapshot === null) return;
    const { units, ids, reader } = this.snapshot;
    const found: string[] = [];
    for (const unit of units) {
      // Some of it was read before an interruption.
      const first = Math.floor(this.random() * 2);
      const before = await readUnits([unit], reader);
      const after = await readUnits([unit], reader, first);
      deepEqual([...before.problems, ...after.problems], []);
      const both = [...before.found.filter(({ at }) => at <= first), ...after.found];
      found.push(...both.map(({ event }) => event.id));
    }
    deepEqual(found.toSorted(), ids);
  }
}
