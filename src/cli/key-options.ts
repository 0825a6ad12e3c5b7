import type { Config } from '../config/config.ts';
import type { RecordOpener } from '../core/sealed-record.ts';
import { isPublicKey } from '../core/signature.ts';
import { errorCode } from '../lib/durable.ts';
import { readProof } from '../privacy/proof/open.ts';
import { GrowingKeys } from '../privacy/seal/growing-keys.ts';
import { KeyStore } from '../privacy/seal/key-store.ts';
import { parseMasterKey } from '../privacy/seal/master-key.ts';
import { notTheOneSeen, problemsOf, refuse, seenIn } from '../privacy/seal/seen.ts';
import type { KeyProblem } from '../privacy/seal/tombstones.ts';
import { usageError, type Io } from './io.ts';
import { type ConfigFlags, resolvedConfigOf } from './config-options.ts';
import { type OptionsOf, readAs, repeated } from './options.ts';

const MASTER_KEY = 'MILLRACE_MASTER_KEY';

/** For commands that read sealed archives; each has a --config of its own. */
export const KEY_OPTIONS = {
  '--keys <folder>': 'open sealed records with the keys in this folder',
  '--master-key-env <name>': `the variable with its master key (default: ${MASTER_KEY})`,
};

/** For commands that check signatures of manifests or receipts. */
export const PUBLIC_KEY = {
  '--public-key <key>': repeated('a key that signs them, as `millrace keys public` prints it', publicKey),
};

function publicKey(text: string): string {
  if (isPublicKey(text)) return text;
  throw new TypeError('not a public key');
}

export type KeyOptions = ConfigFlags & Partial<OptionsOf<typeof KEY_OPTIONS>>;

/** A key store and what opens it. */
export interface KeyStorePlace {
  readonly path: string;
  readonly master: Buffer;
  /** The config whose ledger lists destroyed keys; null without one. */
  readonly config: Config | null;
}

/**
 * Opens sealed records with the keys that the options name; undefined when they name none.
 * @param need `nothing`: a master key that the config names and the environment lacks is no error; records stay sealed
 * @param onProblem reports a key store that was changed or is an older copy; without it that is an error
 * @throws MillraceError usage, config_invalid, keys_unusable, master_key_wrong, keys_stale, ledger_forged
 */
export async function openerOf(
  options: KeyOptions,
  io: Io,
  need: 'keys' | 'nothing' = 'keys',
  onProblem?: (path: string, problem: KeyProblem) => void,
): Promise<RecordOpener | undefined> {
  const rings: GrowingKeys[] = [];
  for (const { path, master, config } of await keyStoresOf(options, io, need)) {
    const ledger = config === null ? null : readProof(config).ledger;
    const seen = seenIn(path, ledger);
    const ring = await KeyStore.read(path, master).catch((error: unknown) => {
      if (need === 'nothing' && error instanceof Error && errorCode(error.cause) === 'ENOENT') return null;
      throw error;
    });
    if (ring !== null) rings.push(new GrowingKeys(ring, path));
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

/** The store of --keys, else the stores of the sinks in --config; none without either. */
export async function keyStoresOf(
  options: KeyOptions,
  io: Io,
  need: 'keys' | 'nothing' = 'keys',
): Promise<KeyStorePlace[]> {
  if (options.keys !== undefined) {
    const master = masterKeyFrom(io, '--master-key-env', options.masterKeyEnv ?? MASTER_KEY);
    const config = options.config === undefined ? null : (await resolvedConfigOf(options, io)).config;
    return [{ path: options.keys, master, config }];
  }
  if (options.masterKeyEnv !== undefined) throw usageError('--master-key-env goes with --keys');
  if (options.config === undefined) return [];
  const { config, unset } = await resolvedConfigOf(options, io);
  return Object.entries(config.sinks).flatMap(([name, { description }]) => {
    const { keys } = description;
    if (keys === undefined) return [];
    const missing = unset.find((key) => key.startsWith(`sinks.${name}.${keys.option}.`));
    if (missing === undefined) return [{ path: keys.store, master: keys.masterKey(), config }];
    if (need === 'nothing') return [];
    throw usageError(`${missing}: its variable is not set, and the archive is sealed`);
  });
}

/** @throws MillraceError usage when the variable is not set, or is no key */
export function masterKeyFrom(io: Io, option: string, name: string): Buffer {
  const text = io.env[name];
  if (text === undefined || text === '') throw usageError(`${option} ${name}: not set`);
  return readAs(option, name, () => parseMasterKey(text));
}
