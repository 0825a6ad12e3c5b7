import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '../../src');

/**
 * Arrows of the picture in design: who may import whom beside `core` and `lib`. A room is a folder, a file at the root, or
 * the folder of one command. Add one only with the picture.
 */
const ARROWS: Readonly<Record<string, string>> = {
  'main.ts': 'cli',
  'app.ts': 'admin config parts plan.ts',
  'drain.ts': 'config deliver parts plan.ts',
  parts:
    'admin config deliver erase journal metrics plan.ts proof receipts receive schema sinks sources storage validate',
  'plan.ts': 'config deliver route validate verify',
  api: 'archive sinks verify',
  cli: 'admin archive backfill config deliver erase export journal proof receipts route sandbox schema seal service storage validate verify warehouse',
  'cli/backfill': 'backfill erase service',
  'cli/check': 'archive config route validate verify warehouse',
  'cli/drain': 'config drain.ts',
  'cli/demo': 'app.ts archive backfill config sandbox service verify',
  'cli/dev': 'app.ts config sandbox verify',
  'cli/erase': 'admin archive config erase journal proof receipts',
  'cli/fixture': 'archive verify',
  'cli/load': 'deliver load sinks warehouse',
  'cli/ndjson': 'ndjson warehouse',
  'cli/receipt': 'receipts',
  'cli/reconcile': 'archive backfill config erase proof receipts reconcile service',
  'cli/replay': 'archive config deliver erase plan.ts proof replay route storage validate',
  'cli/sandbox': 'config sandbox sinks',
  'cli/serve': 'app.ts config',
  'cli/webhooks': 'config sandbox service verify',
  config: 'journal service sinks sources storage',
  journal: 'sinks',
  archive: 'storage',
  delta: 'parquet',
  parquet: 'warehouse',
  receive: 'validate',
  deliver: 'route',
  admin: 'config metrics validate',
  sandbox: 'verify',
  schema: 'warehouse',
  sources: 'validate sinks',
  ndjson: 'warehouse',
  reconcile: 'archive backfill ndjson route service',
  replay: 'archive deliver validate',
  erase: 'archive delta parquet seal storage',
  export: 'archive delta parquet storage warehouse',
  load: 'archive export parquet warehouse',
  sinks: 'archive backfill load seal service storage verify warehouse',
  backfill: 'service ndjson warehouse',
};
const arrowsOf = (room: string): string[] => ARROWS[room]?.split(' ') ?? [];

/** All that stands at the root. */
const ROOT = ['app.ts', 'drain.ts', 'main.ts', 'plan.ts'];

/** SDKs and the folders that may import each, of a sink, a source, a store. Their registries load the folders lazily. */
const VENDORS: Readonly<Record<string, readonly string[]>> = {
  '@aws-sdk/client-s3': ['s3'],
  '@azure/event-hubs': ['event-hubs'],
  '@azure/eventhubs-checkpointstore-blob': ['event-hubs'],
  '@azure/identity': ['azblob', 'event-hubs'],
  '@azure/storage-blob': ['azblob', 'event-hubs'],
  '@google-cloud/pubsub': ['pubsub'],
  '@platformatic/kafka': ['kafka'],
  'google-auth-library': ['gs'],
  pg: ['postgres'],
  'pg-copy-streams': ['postgres'],
};

interface Import {
  readonly file: string;
  readonly target: string;
  readonly lazy: boolean;
}

function* importsOf(): Generator<Import> {
  for (const entry of readdirSync(SRC, { recursive: true, encoding: 'utf8' })) {
    if (!entry.endsWith('.ts')) continue;
    const text = readFileSync(join(SRC, entry), 'utf8');
    for (const [, from, lazily] of text.matchAll(
      /(?:^|\n)(?:import|export)[^'";]*?from '([^']+)'|import\('([^']+)'\)/g,
    )) {
      const specifier = from ?? lazily ?? '';
      const target = specifier.startsWith('.')
        ? relative(SRC, join(SRC, dirname(entry), specifier))
        : specifier;
      yield { file: entry, target, lazy: lazily !== undefined };
    }
  }
}

const roomOf = (path: string): string => {
  const [room = '', command = '', file] = path.split(sep);
  return room === 'cli' && file !== undefined ? `cli/${command}` : room;
};
/** The program and its commands: it loads them, and they use what they share. */
const isWithinCli = (from: string, to: string): boolean =>
  [from, to].includes('cli') && [from, to].every((room) => room.split('/')[0] === 'cli');
const isLocal = (target: string): boolean => target.endsWith('.ts');

describe('imports point one way', () => {
  const imports = [...importsOf()];

  test('there are imports to look at', () => {
    expect(imports.length).toBeGreaterThan(100);
    expect(imports.some(({ lazy }) => lazy)).toBe(true);
  });

  const between = imports.flatMap(({ file, target }) => {
    const [from, to] = [roomOf(file), roomOf(target)];
    return isLocal(target) && from !== to ? [{ file, from, to }] : [];
  });
  test('every file imports core, lib, its own room and what an arrow allows', () => {
    const broken = between.filter(({ from, to }) => {
      if (from === 'lib') return true;
      if (from === 'core') return to !== 'lib';
      return to !== 'core' && to !== 'lib' && !isWithinCli(from, to) && !arrowsOf(from).includes(to);
    });
    expect(broken).toEqual([]);
  });

  test('every arrow is taken by some file', () => {
    const taken = new Set(between.map(({ from, to }) => `${from} → ${to}`));
    const arrows = Object.keys(ARROWS).flatMap((from) => arrowsOf(from).map((to) => `${from} → ${to}`));
    expect(arrows.filter((arrow) => !taken.has(arrow))).toEqual([]);
  });

  test('no circle: of files, or of rooms', () => {
    const files = imports.flatMap(({ file, target }) => (isLocal(target) ? [[file, target] as const] : []));
    const rooms = between.flatMap(({ from, to }) => (isWithinCli(from, to) ? [] : [[from, to] as const]));
    expect([...circlesOf(files), ...circlesOf(rooms)]).toEqual([]);
  });

  test('the root holds the process, the system, its plan and its parts, and nothing else', () => {
    expect(readdirSync(SRC).filter((name) => name.endsWith('.ts'))).toEqual(ROOT);
  });

  test('an SDK is imported in its own folder only', () => {
    const broken = imports.filter(({ file, target }) => {
      const vendor = Object.keys(VENDORS).find((name) => target === name || target.startsWith(`${name}/`));
      if (vendor === undefined) return false;
      const folders = VENDORS[vendor] ?? [];
      return !['sinks', 'sources', 'storage', 'journal', 'load'].some((room) =>
        folders.some((folder) => dirname(file) === `${room}/${folder}`),
      );
    });
    expect(broken).toEqual([]);
  });

  test('a vendor’s folder is loaded lazily, by the registry', () => {
    const broken = imports.filter(
      ({ file, target, lazy }) =>
        !lazy &&
        /^(sinks|sources|storage)\/[^/]+\//.test(target) &&
        // A vendor's source is free to use what its sink knows of the vendor.
        basename(dirname(file)) !== basename(dirname(target)),
    );
    expect(broken).toEqual([]);
  });
});

/** @returns for each way back to where a walk along the arrows came from: the walk */
function circlesOf(arrows: readonly (readonly [from: string, to: string])[]): string[] {
  const targets = Map.groupBy(arrows, ([from]) => from);
  const left = new Set<string>();
  const circles: string[] = [];
  const visit = (at: string, way: readonly string[]): void => {
    if (way.includes(at)) circles.push([...way.slice(way.indexOf(at)), at].join(' → '));
    else if (!left.has(at)) {
      for (const [, to] of targets.get(at) ?? []) visit(to, [...way, at]);
      left.add(at);
    }
  };
  for (const from of targets.keys()) visit(from, []);
  return circles;
}
