import type { Config } from '../config/config.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { errorCode } from '../lib/durable.ts';
import { readProof } from '../privacy/proof/open.ts';
import { GrowingKeys } from '../privacy/seal/growing-keys.ts';
import { KeyStore } from '../privacy/seal/key-store.ts';
import { parseMasterKey } from '../privacy/seal/master-key.ts';
import { notTheOneSeen, problemsOf, refuse, seenIn } from '../privacy/seal/seen.ts';
import type { KeyProblem } from '../privacy/seal/tombstones.ts';
import { usageError, type Io } from './io.ts';
import { type ConfigFlags, resolvedConfigOf } from './config-options.ts';
import { type OptionsOf, readAs } from './options.ts';

/** The variable that is looked at when none is named. */
export const MASTER_KEY = 'MILLRACE_MASTER_KEY';

/** For commands that read archives; those with a `--config` of their own need not ask for another. */
export const KEY_OPTIONS = {
  '--keys <folder>': 'open sealed records with the keys in this folder',
  '--master-key-env <name>': `the variable with its master key (default: ${MASTER_KEY})`,
};

export type KeyOptions = ConfigFlags & Partial<OptionsOf<typeof KEY_OPTIONS>>;

export interface KeyPlace {
  readonly path: string;
  readonly master: Buffer;
  /** The config whose ledger says what was destroyed of it; null without one. */
  readonly config: Config | null;
}

/**
 * What opens the sealed records of the archives that are meant; undefined when nothing says where keys are.
 * @param need false for a command that has something to say about records that stay closed too: then a master key that
 *   the config names and the environment lacks is no error
 * @param onProblem told of a store that is not as it was left; without it that is an error
 * @throws MillraceError usage, config_invalid, keys_unusable, master_key_wrong, keys_stale, ledger_forged
 */
export async function openerOf(
  options: KeyOptions,
  io: Io,
  need: 'keys' | 'nothing' = 'keys',
  onProblem?: (path: string, problem: KeyProblem) => void,
): Promise<RecordOpener | undefined> {
  const places = await keyPlaces(options, io, need);
  const rings: GrowingKeys[] = [];
  for (const { path, master, config } of places) {
    const ledger = config === null ? null : readProof(config).ledger;
    const seen = seenIn(path, ledger);
    const ring = await KeyStore.read(path, master).catch((error: unknown) => {
      if (need === 'nothing' && error instanceof Error && errorCode(error.cause) === 'ENOENT') return null;
      throw error;
    });
    if (ring !== null) rings.push(new GrowingKeys(ring, path));
    // Without keys and a word of them nothing has been sealed yet.
    const problems = ring === null ? notTheOneSeen(ring, seen) : problemsOf(ring, ledger, seen);
    if (onProblem === undefined) refuse(path, problems);
    else for (const problem of problems) onProblem(path, problem);
  }
  const [first] = rings;
  if (rings.length < 2) return first;
  return {
    destroyed: rings.reduce((sum, { destroyed }) => sum + destroyed, 0),
    open: (sealed) => {
      for (const ring of rings) {
        const opened = ring.open(sealed);
        if (opened.ok || opened.why !== 'unknown_key') return opened;
      }
      return { ok: false, why: 'unknown_key' };
    },
  };
}

/** The store that `--keys` names, else those of the sinks that `--config` has; none without either. */
export async function keyPlaces(
  options: KeyOptions,
  io: Io,
  need: 'keys' | 'nothing' = 'keys',
): Promise<KeyPlace[]> {
  if (options.keys !== undefined) {
    const master = masterKeyFrom(io, '--master-key-env', options.masterKeyEnv ?? MASTER_KEY);
    const config = options.config === undefined ? null : (await resolvedConfigOf(options, io)).config;
    return [{ path: options.keys, master, config }];
  }
  if (options.masterKeyEnv !== undefined) throw usageError('--master-key-env goes with --keys');
  if (options.config === undefined) return [];
  const { config, unset } = await resolvedConfigOf(options, io);
  const sealed = Object.entries(config.sinks).flatMap(([name, { description }]) => {
    const { keys } = description;
    if (keys === undefined) return [];
    return [{ keys, hole: unset.find((key) => key.startsWith(`sinks.${name}.${keys.option}.`)) }];
  });
  const [hole] = sealed.flatMap((sink) => sink.hole ?? []);
  if (hole !== undefined && need === 'keys')
    throw usageError(`${hole}: its variable is not set, and the archive is sealed`);
  return sealed.flatMap(({ keys, hole: missing }) =>
    missing === undefined ? [{ path: keys.store, master: keys.masterKey(), config }] : [],
  );
}

/** @throws MillraceError usage when it is not set, or no key */
export function masterKeyFrom(io: Io, option: string, name: string): Buffer {
  const text = io.env[name];
  if (text === undefined || text === '') throw usageError(`${option} ${name}: not set`);
  return readAs(option, name, () => parseMasterKey(text));
}
