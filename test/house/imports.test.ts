import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '../../src');

/** The rooms, folders and main.ts, and which siblings each may import beside `core` and `lib`: the table of src/README.md. */
const ROOMS = new Map(
  Array.from(
    readFileSync(join(SRC, 'README.md'), 'utf8').matchAll(/^\| `([\w.]+)` +\|[^|]+\|([^|]*)\|$/gm),
    ([, room = '', siblings = '']) => [room, siblings.trim().split(' ')] as const,
  ),
);

function mayImport(from: string, to: string): boolean {
  const [first, ...others] = ROOMS.get(from) ?? [];
  return first === 'all' ? !others.includes(to) : first === to || others.includes(to);
}

/** SDKs and the vendors' folders that may import each, in any room. Registries load the folders of sinks, sources and stores lazily. */
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

const roomOf = (path: string): string => path.split(sep)[0] ?? '';
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
  test('every file imports core, lib, its own room and what its row allows', () => {
    const broken = between.filter(({ from, to }) => {
      if (from === 'lib') return true;
      if (from === 'core') return to !== 'lib';
      return to !== 'core' && to !== 'lib' && !mayImport(from, to);
    });
    expect(broken).toEqual([]);
  });

  test('every sibling that a row names is imported by some file', () => {
    const taken = new Set(between.map(({ from, to }) => `${from} → ${to}`));
    const rows = Array.from(ROOMS).filter(([, [first]]) => first !== 'all' && first !== '');
    const named = rows.flatMap(([from, siblings]) => siblings.map((to) => `${from} → ${to}`));
    expect(named.filter((arrow) => !taken.has(arrow))).toEqual([]);
  });

  test('no circle: of files, or of rooms', () => {
    const files = imports.flatMap(({ file, target }) => (isLocal(target) ? [[file, target] as const] : []));
    expect([...circlesOf(files), ...circlesOf(between.map(({ from, to }) => [from, to] as const))]).toEqual(
      [],
    );
  });

  test('the table has all rooms, and nothing else stands beside them', () => {
    expect(readdirSync(SRC).toSorted()).toEqual([...ROOMS.keys(), 'README.md'].toSorted());
  });

  test('an SDK is imported in its own folder only', () => {
    const broken = imports.filter(({ file, target }) => {
      const vendor = Object.keys(VENDORS).find((name) => target === name || target.startsWith(`${name}/`));
      if (vendor === undefined) return false;
      const folders = VENDORS[vendor] ?? [];
      return !['vendors', 'sinks', 'sources', 'storage', 'journal'].some((room) =>
        folders.some((folder) => dirname(file) === `${room}/${folder}`),
      );
    });
    expect(broken).toEqual([]);
  });

  test('a vendor’s folder is loaded lazily, by the registry', () => {
    const broken = imports.filter(
      ({ file, target, lazy }) =>
        !lazy && /^(sinks|sources|storage)\/[^/]+\//.test(target) && dirname(file) !== dirname(target),
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
