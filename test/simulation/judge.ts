import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { OpensSealed } from '../privacy/seal/open-sealed.ts';
import { MASTER_KEY } from './master-key.ts';
import type { Disk, File } from './disk.ts';
import type { World } from './world.ts';

/** What a sender knows of an event. */
export interface Sent {
  readonly id: string;
  readonly user: number;
  readonly type: string;
  readonly body: string;
  readonly sender: number;
  readonly order: number;
  /** When it had a 2xx, milliseconds; null when it never had. */
  acknowledged: number | null;
  /** Configs that may have been in force when it was accepted. */
  readonly configs: Set<number>;
}

/** Each has a folder of its name. */
export const SINKS = ['archive', 'second', 'third'] as const;

interface Found {
  readonly id: string;
  readonly text: string;
  readonly file: string;
  readonly sink: string;
}

/**
 * Holds what lies on the disk against what the senders know. Shares no code with the program: finished files are lines of
 * JSON, gzipped or not, and a manifest names each with its SHA-256.
 */
export function judge(case_: {
  readonly disk: Disk;
  readonly broker: World['broker'];
  readonly lake: World['lake'];
  readonly folder: string;
  readonly sent: readonly Sent[];
  readonly isSealed: boolean;
  readonly sinksOf: (config: number, type: string) => readonly string[];
  readonly erased: ReadonlyMap<number, number>;
  /** When `second` or `third` was last given up: what was acknowledged before may have been a dead letter, and come late. */
  readonly givenUp: number;
}): string[] {
  const { disk, broker, lake, folder, isSealed, sent, sinksOf, erased, givenUp } = case_;
  const faults: string[] = [];
  const found = new Map<string, Found[]>();
  const newest = new Map<string, number>();
  let keys: OpensSealed | null = null;
  const known = new Map(sent.map((event) => [event.id, event]));
  for (const sink of SINKS) {
    if (!disk.has(`${folder}/${sink}`)) continue;
    for (const path of disk.list(`${folder}/${sink}`)) {
      const name = path.slice(folder.length + 1);
      if (/\.ndjson(\.gz)?$/.test(name) && !name.includes('/.')) read(path, name);
    }
  }
  readBroker();
  for (const { id, body } of lake.taken) add({ id, text: body, file: 'lake', sink: 'lake' });
  for (const [id, copies] of found) {
    const event = known.get(id);
    if (event === undefined) faults.push(`${copies[0]?.file} holds ${id}, which was not sent`);
    else if (erased.has(event.user) && copies.some(({ sink }) => SINKS.some((own) => own === sink)))
      faults.push(`${copies[0]?.file} holds ${id} of user ${event.user}, who is erased`);
    else if (
      !copies.every(
        ({ text }) => text.includes(JSON.stringify(event.body).slice(1, -1)) || text.includes(event.body),
      )
    )
      faults.push(`${copies[0]?.file} holds other bytes of ${id}`);
  }
  for (const event of sent) {
    if (event.acknowledged === null || erased.has(event.user)) continue;
    const places = new Set(found.get(event.id)?.map(({ sink }) => sink));
    const choices = [...event.configs].map((config) => sinksOf(config, event.type));
    // What waited for the second sink when it was renamed is at the third.
    const isAt = (sink: string): boolean => places.has(sink) || (sink === 'second' && places.has('third'));
    if (choices.some((sinks) => sinks.every(isAt))) continue;
    const owed = choices.map((sinks) => sinks.join(' and ')).join(', or ');
    faults.push(
      `${event.id}, acknowledged at ${event.acknowledged}, is in [${[...places].join()}], not in ${owed}`,
    );
  }
  return faults;

  /** A sender waits for each answer: within a file, its events of one user stand in the order in which it sent them. */
  function inOrder(event: Sent | undefined, file: string): void {
    if (event === undefined) return;
    const key = `${file} ${event.sender} ${event.user}`;
    const before = newest.get(key) ?? -1;
    if (event.order < before) faults.push(`${file} has ${event.id} behind a later event of its user`);
    newest.set(key, Math.max(before, event.order));
  }

  /** Null for a record whose key is destroyed. */
  function unsealed(line: string): string | null {
    keys ??= new OpensSealed((disk.find(`${folder}/keys/keys.bin`, 'judge') as File).data, MASTER_KEY);
    const { key } = JSON.parse(line) as { key: string };
    return keys.destroyed.has(key) ? null : keys.text(line).toString();
  }

  function add(copy: Found): void {
    found.set(copy.id, [...(found.get(copy.id) ?? []), copy]);
  }

  /** What is far away keeps the order of all its events of a user, but for one that it had refused. */
  function readBroker(): void {
    for (const { id, body } of broker.taken) {
      const before = found.get(id) ?? [];
      if (!broker.refused.has(id) && !before.some(({ sink }) => sink === 'broker'))
        inOrder(known.get(id), 'broker');
      add({ id, text: body, file: 'broker', sink: 'broker' });
    }
  }

  function read(path: string, name: string): void {
    const { data } = disk.find(path, 'judge') as File;
    let text: string;
    try {
      text = (name.endsWith('.gz') ? gunzipSync(data) : data).toString();
    } catch (error) {
      faults.push(`${name} is torn: ${(error as Error).message}`);
      return;
    }
    const manifest = `${folder}/${name.split('/')[0]}/_manifest.jsonl`;
    const listed = disk.has(manifest) ? (disk.find(manifest, 'judge') as File).data.toString() : '';
    const hash = createHash('sha256').update(data).digest('hex');
    if (!listed.includes(hash)) faults.push(`${name} is not in the manifest with its hash`);
    const sink = name.split('/')[0] ?? '';
    for (const written of text.split('\n').slice(0, -1)) {
      try {
        const line = isSealed && sink === 'archive' ? unsealed(written) : written;
        if (line === null) continue;
        const { id } = JSON.parse(line) as { id: string };
        const before = found.get(id) ?? [];
        const event = known.get(id);
        const mayBeLate = sink !== 'archive' && (event?.acknowledged ?? 0) <= givenUp;
        // One that comes again after a crash stands where it stands: it was in its place before.
        if (!mayBeLate && !before.some((copy) => copy.sink === sink)) inOrder(event, name);
        add({ id, text: line, file: name, sink });
      } catch (error) {
        faults.push(`${name} has a line that cannot be read: ${(error as Error).message}`);
      }
    }
    if (!text.endsWith('\n')) faults.push(`${name} ends in the middle of a line`);
  }
}
