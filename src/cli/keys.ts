import type { Command } from 'commander';
import { EXIT, MillraceError } from '../core/errors.ts';
import { openProof, readProof } from '../privacy/proof/open.ts';
import { KEYS, KeyStore } from '../privacy/seal/key-store.ts';
import { newMasterKey } from '../privacy/seal/master-key.ts';
import { problemsOf, seenIn } from '../privacy/seal/seen.ts';
import {
  KEY_OPTIONS,
  type KeyOptions,
  type KeyStorePlace,
  keyStoresOf,
  masterKeyFrom,
} from './key-options.ts';
import { actAsOwnerOf } from './as-owner.ts';
import { closing, note, printResult, usageError, type Io } from './io.ts';
import { CONFIG, configOf } from './config-options.ts';
import { commandOf, type OptionsOf, required } from './options.ts';

const HELP = `
Examples:
  millrace keys generate
  millrace keys status --config config/millrace.yaml
  millrace keys rotate --config config/millrace.yaml --new-master-key-env NEW_MASTER_KEY
  millrace keys rotate --keys ./data/keys --master-key-env OLD --new-master-key-env NEW
  millrace keys catch-up --config config/millrace.yaml
  millrace keys public --config config/millrace.yaml

A files sink with encrypt seals each record with a key per user. The keys are in a key store, encrypted with the master key.
generate prints a new master key: keep it apart from the store and the archive; without it nothing can be opened. status counts
the keys of each store. rotate encrypts all keys with a new master key while no receiver runs; it does not change the archive.
Afterwards give the receiver the new master key and destroy the old one: only then are older copies of the store useless.

erasure.path/ledger.jsonl has the id of every key that an erasure destroyed, and key-stores/ beside it the newest key of each
store. A store that was restored from an older backup, or is missing, is refused by the receiver and all commands; catch-up
destroys those keys again and accepts the store. public prints the key that proves manifests and receipts: give it to anyone
who verifies without this config.

Exit codes: 0 done, 1 failed, 2 usage or config, wrong master key, or store in use, 4 the store was changed or is an older copy.`;

const PLACE = { '--config <file>': 'the config file that names the key stores', ...KEY_OPTIONS };
const GENERATE = { '--json': 'print one JSON document: {master_key}' };
const STATUS = {
  ...PLACE,
  '--json': 'print one JSON document: {path, active, destroyed, damaged}, and {problems} if there are any',
};
const ROTATE = {
  ...PLACE,
  '--new-master-key-env <name>': required('the variable with the new master key'),
  '--json': 'print one JSON document: {path, rotated}',
};
const CATCH_UP = {
  '--config <file>': required('the config with the sinks and the ledger'),
  '--json': 'print one JSON document: {path, destroyed}',
};
const PUBLIC = { ...CONFIG, '--json': 'print one JSON document: {public_key}' };

export function keysCommand(io: Io): Command {
  const generate = commandOf('generate', GENERATE, HELP)
    .description('print a new master key')
    .action((options: OptionsOf<typeof GENERATE>) => {
      const key = newMasterKey();
      printResult(io, options, { master_key: key }, key);
    });
  const status = commandOf('status', STATUS, HELP)
    .description('count the keys of a store')
    .action(async (options: OptionsOf<typeof STATUS>) => {
      for (const { path, master, config } of await storesOf(options, io)) {
        const ledger = config === null ? null : readProof(config).ledger;
        const seen = seenIn(path, ledger);
        const ring = await KeyStore.read(path, master);
        const problems = problemsOf(ring, ledger, seen);
        const { active, destroyed, damaged } = ring.counts;
        const words = `${path}: ${active} keys, ${destroyed} destroyed, ${damaged} damaged`;
        const found = { path, ...ring.counts, ...(problems.length === 0 ? {} : { problems }) };
        printResult(io, options, found, words);
        for (const { code, detail } of problems) note(io, `${path}: ${code}: ${detail}`);
        if (problems.length > 0) io.setExit(EXIT.difference);
      }
    });
  const rotate = commandOf('rotate', ROTATE, HELP)
    .description('encrypt every key with a new master key')
    .action(async (options: OptionsOf<typeof ROTATE>) => {
      const fresh = masterKeyFrom(io, '--new-master-key-env', options.newMasterKeyEnv);
      for (const { path, master, config } of await storesOf(options, io)) {
        const ledger = config === null ? null : (await openProof(config)()).ledger;
        await using store = closing(await KeyStore.open(path, master, ledger).catch(refuse));
        const rotated = await store.rotate(fresh);
        printResult(io, options, { path, rotated }, `${path}: ${rotated} keys rewrapped`);
      }
      note(io, 'give the receiver the new master key before it starts, and destroy the old one');
    });
  const catchUp = commandOf('catch-up', CATCH_UP, HELP)
    .description('accept a store restored from a backup, after destroying again what erasures destroyed')
    .action(async (options: OptionsOf<typeof CATCH_UP>) => {
      for (const { path, master, config } of await storesOf(options, io)) {
        if (config === null) continue;
        const { ledger } = await openProof(config)();
        const destroyed = await KeyStore.catchUp(path, master, ledger).catch(refuse);
        printResult(io, options, { path, destroyed }, `${path}: ${destroyed} keys destroyed again`);
      }
    });
  const showPublic = commandOf('public', PUBLIC, HELP)
    .description('print the public half of the key that signs manifests and receipts')
    .action((options: OptionsOf<typeof PUBLIC>) => {
      const { config } = configOf(options, io);
      const { publicKey, keyFile } = readProof(config);
      if (publicKey === null)
        throw new MillraceError(
          'proof_unusable',
          `${keyFile} does not exist; the first start of a receiver creates it`,
        );
      printResult(io, options, { public_key: publicKey }, publicKey);
    });
  return commandOf('keys', {}, HELP)
    .description('create and manage the keys of sealed archives')
    .addCommand(generate)
    .addCommand(status)
    .addCommand(rotate)
    .addCommand(catchUp)
    .addCommand(showPublic, { isDefault: true });
}

async function storesOf(options: KeyOptions, io: Io): Promise<KeyStorePlace[]> {
  const stores = await keyStoresOf(options, io);
  const [first] = stores;
  if (first === undefined)
    throw usageError('name the keys: --keys FOLDER, or --config FILE with a files sink that has encrypt');
  actAsOwnerOf(first.path, KEYS);
  return stores;
}

/** Exit code 2 for a store in use: retrying helps a receiver, not a command. */
function refuse(error: unknown): never {
  const isInUse = error instanceof MillraceError && error.code === 'keys_in_use';
  throw isInUse ? new MillraceError('folder_in_use', error.detail, { cause: error }) : error;
}
