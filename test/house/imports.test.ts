import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = join(import.meta.dirname, '../../src');

/** Arrows of the picture in design: who may import whom beside `core` and `lib`. Add one only with the picture. */
const ARROWS: Readonly<Record<string, readonly string[]>> = {
  config: ['sinks', 'sources'],
  receive: ['validate'],
  workers: ['config', 'journal', 'metrics', 'receive', 'validate', 'verify'],
  deliver: ['route'],
  admin: ['config', 'metrics', 'validate'],
  sandbox: ['verify'],
  sources: ['validate', 'sinks'],
  ndjson: ['warehouse'],
  reconcile: ['archive', 'backfill', 'ndjson', 'route', 'service'],
  replay: ['archive', 'deliver', 'validate'],
  erase: ['archive', 'config', 'seal'],
  export: ['archive', 'warehouse'],
  sinks: ['archive', 'backfill', 'seal', 'service'],
  backfill: ['service', 'ndjson', 'warehouse'],
};
/** They choose and wire, so they may import every room: the commands, the package's exports, and the files beside the rooms. */
const isComposer = (from: string): boolean => ['api', 'cli'].includes(from) || from.endsWith('.ts');

/** SDKs and the folder that may import each, of a sink and of a source. Their registries load the folders lazily. */
const VENDORS: Readonly<Record<string, string>> = {
  '@azure/event-hubs': 'event-hubs',
  '@azure/eventhubs-checkpointstore-blob': 'event-hubs',
  '@azure/identity': 'event-hubs',
  '@azure/storage-blob': 'event-hubs',
  '@google-cloud/pubsub': 'pubsub',
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

  test('rooms import core, lib, themselves and what an arrow allows', () => {
    const broken = imports.filter(({ file, target }) => {
      const from = roomOf(file);
      const to = roomOf(target);
      if (!isLocal(target) || isComposer(from) || from === to) return false;
      if (from === 'lib') return true;
      if (from === 'core') return to !== 'lib';
      return to !== 'core' && to !== 'lib' && !(ARROWS[from] ?? []).includes(to);
    });
    expect(broken).toEqual([]);
  });

  test('an SDK is imported in its own folder only', () => {
    const broken = imports.filter(({ file, target }) => {
      const vendor = Object.keys(VENDORS).find((name) => target === name || target.startsWith(`${name}/`));
      if (vendor === undefined) return false;
      return ![`sinks/${VENDORS[vendor]}`, `sources/${VENDORS[vendor]}`].includes(dirname(file));
    });
    expect(broken).toEqual([]);
  });

  test('a vendor’s folder is loaded lazily, by the registry', () => {
    const broken = imports.filter(
      ({ file, target, lazy }) =>
        !lazy &&
        /^(sinks|sources)\/[^/]+\//.test(target) &&
        // A vendor's source is free to use what its sink knows of the vendor.
        basename(dirname(file)) !== basename(dirname(target)),
    );
    expect(broken).toEqual([]);
  });
});
