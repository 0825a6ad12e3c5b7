import { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { EXIT, MillraceError } from '../core/errors.ts';
import { openProof, readProof } from '../proof/open.ts';
import { KEYS, KeyStore } from '../seal/key-store.ts';
import { DestroyedKeys } from '../seal/destroyed-keys.ts';
import { newMasterKey } from '../seal/master-key.ts';
import type { KeyPlace as SharedPlace } from '../seal/key-place.ts';
import type { KeyCounts } from '../seal/key-ring.ts';
import { problemsOf, seenIn } from '../seal/seen.ts';
import type { PlaceWitness } from '../seal/place-witness.ts';
import type { KeyProblem } from '../seal/tombstones.ts';
import { addKeyOptions, keyPlaces, masterKeyFrom, type KeyOptions, type KeyPlace } from './key-options.ts';
import { actAsOwnerOf } from './as-owner.ts';
import { note, print, usageError, type Io } from './io.ts';
import { SILENT } from '../core/sink.ts';
import type { ObjectStore } from '../core/storage.ts';
import { openStore } from '../storage/open.ts';
import { configOf, configOption, resolvedConfigOf } from './config-options.ts';

const HELP = `
Examples:
  millrace keys generate
  millrace keys status --config config/millrace.yaml
  millrace keys rotate --config config/millrace.yaml --new-master-key-env NEW_MASTER_KEY
  millrace keys rotate --keys ./data/keys --master-key-env OLD --new-master-key-env NEW
  millrace keys catch-up --config config/millrace.yaml
  millrace keys public --config config/millrace.yaml
  millrace keys begin --config config/fleet.yaml

A files sink with encrypt seals each record with a key per user. The keys are in its store, wrapped by the master key.
generate prints a new master key: keep it apart from the store and the archive, because without it nothing can be opened.
status counts the keys of sinks and of journal.encrypt.
rotate rewraps every key of a sink's store with a new master key while no receiver is running; it does not touch the archive. Afterwards give
the receiver the new one and destroy the old one: only then are older copies of the store useless.
erasure.path/ledger.jsonl holds the id of every key that an erasure destroyed, and key-stores/ beside it the newest key of each store. A
store that still holds such a key, or lacks that one, was restored from a backup: the receiver and all commands refuse it, and one that is
not there any more; catch-up destroys those keys again, and goes on with what is there; for a fleet the same is noted in its topics. public prints the key that
proves manifests and receipts: give it to anyone who verifies without this config.
begin is for a fleet: the first start begins the empty place of journal.encrypt only while its topics are empty too, because a place that is
not mounted looks empty. Run it once where topics have events of before journal.encrypt was set; it leaves a place that was begun as it is,
and refuses to begin another one than the topics name.
Exit codes: 0 done, 1 failed, 2 usage or config, wrong master key, or store in use, 4 the store was changed or is an older copy.`;

interface Options extends KeyOptions {
  readonly newMasterKeyEnv?: string;
}

export function keysCommand(io: Io): Command {
  const keys = new Command('keys')
    .description('create and manage the keys of sealed archives')
    .addHelpText('after', HELP);
  keys
    .command('generate')
    .description('print a new master key')
    .option('--json', 'print one JSON document: {master_key}')
    .action(({ json }: Options) => {
      const key = newMasterKey();
      print(io, json === true ? JSON.stringify({ master_key: key }) : key);
    });
  withPlace(keys.command('status').description('count the keys of a store'))
    .option(
      '--json',
      'print one JSON document: {path, active, destroyed, damaged}, and {problems} if there are any',
    )
    .action(async (options: Options) => {
      const say = (path: string, counts: KeyCounts, problems: readonly KeyProblem[]): void => {
        const { active, destroyed, damaged } = counts;
        if (options.json === true)
          print(io, JSON.stringify({ path, ...counts, ...(problems.length === 0 ? {} : { problems }) }));
        else print(io, `${path}: ${active} keys, ${destroyed} destroyed, ${damaged} damaged`);
      };
      const isFleet = await withFleetKeys(options, io, async (_, { url }, place) => {
        say(url, await place.counts(), []);
        return true;
      });
      const places = isFleet === true ? await keyPlaces(options, io) : await placesOf(options, io);
      for (const { path, master, config } of places) {
        const ledger = config === null ? null : readProof(config).ledger;
        const seen = seenIn(path, ledger);
        const ring = await KeyStore.read(path, master);
        const problems = problemsOf(ring, ledger, seen);
        say(path, ring.counts, problems);
        for (const { code, detail } of problems) note(io, `${path}: ${code}: ${detail}`);
        if (problems.length > 0) io.setExit(EXIT.difference);
      }
    });
  withPlace(keys.command('rotate').description('rewrap every key with a new master key'))
    .requiredOption('--new-master-key-env <name>', 'the variable with the new master key')
    .option('--json', 'print one JSON document: {path, rotated}')
    .action(async (options: Options) => {
      const fresh = masterKeyFrom(io, '--new-master-key-env', options.newMasterKeyEnv ?? '');
      if ((await fleetConfigOf(options, io)) !== null)
        throw usageError(
          'the keys of journal.encrypt cannot be rewrapped: its processes would take the place for another one. For the store of a sink say --keys FOLDER',
        );
      const places = await placesOf(options, io);
      for (const place of places) await rotate(place, fresh, options, io);
      note(io, 'give the receiver the new master key before it starts, and destroy the old one');
    });
  keys
    .command('catch-up')
    .description(
      'in a store restored from a backup, destroy again what erasures destroyed, and go on with it',
    )
    .requiredOption('--config <file>', 'the config whose sinks and ledger are meant')
    .option('--json', 'print one JSON document: {path, destroyed}')
    .action(async (options: Options) => {
      const said = (path: string, destroyed: number): void => {
        if (options.json === true) print(io, JSON.stringify({ path, destroyed }));
        else print(io, `${path}: ${destroyed} keys destroyed again`);
      };
      const isFleet = await withFleetKeys(options, io, async (witness, store) => {
        said(store.url, await witness.catchUp(new DestroyedKeys(store)));
        return true;
      });
      const places = isFleet === true ? await keyPlaces(options, io) : await placesOf(options, io);
      for (const { path, master, config } of places) {
        if (config === null) continue;
        const { ledger } = await openProof(config)();
        said(path, await KeyStore.catchUp(path, master, ledger).catch(refuse));
      }
    });
  keys
    .command('begin')
    .description('begin the place of journal.encrypt, for topics that have events which are not sealed')
    .requiredOption('--config <file>', 'the config of the fleet')
    .option('--json', 'print one JSON document: {path}')
    .action(async (options: Options) => {
      const path = await withFleetKeys(
        options,
        io,
        async (witness, { url }) => {
          await witness.tie();
          return url;
        },
        true,
      );
      if (path === null) throw usageError('the config has no journal.encrypt');
      print(io, options.json === true ? JSON.stringify({ path }) : `${path}: begun`);
    });
  keys
    .command('public', { isDefault: true })
    .description('print the public half of the key that signs manifests and receipts')
    .addOption(configOption())
    .option('--json', 'print one JSON document: {public_key}')
    .action((options: Options) => {
      const { config } = configOf(options, io);
      const { publicKey, keyFile } = readProof(config);
      if (publicKey === null)
        throw new MillraceError(
          'proof_unusable',
          `${keyFile} does not exist; the first start of a receiver creates it`,
        );
      print(io, options.json === true ? JSON.stringify({ public_key: publicKey }) : publicKey);
    });
  for (const command of keys.commands) command.addHelpText('after', HELP);
  return keys;
}

function withPlace(command: Command): Command {
  return addKeyOptions(command.option('--config <file>', 'the config file that names the key stores'));
}

/** The config of a fleet whose topics are sealed; null where none is named. */
async function fleetConfigOf(options: Options, io: Io): Promise<Config | null> {
  if (options.keys !== undefined || options.config === undefined) return null;
  const { config } = await resolvedConfigOf(options, io);
  return config.journal.type === 'kafka' && config.journal.encrypt.store !== null ? config : null;
}

/** The keys of a fleet; null where the config has none. */
async function withFleetKeys<T>(
  options: Options,
  io: Io,
  work: (witness: PlaceWitness, store: ObjectStore, place: SharedPlace) => Promise<T>,
  isBegun = false,
): Promise<T | null> {
  const config = await fleetConfigOf(options, io);
  if (config === null) return null;
  const { journal, storage } = config;
  const { withKeyPlace } = await import('../journal/kafka/open.ts');
  const around = { openStore: (place: string) => openStore(place, storage), log: SILENT };
  return withKeyPlace(journal, around, isBegun, work);
}

async function placesOf(options: Options, io: Io): Promise<KeyPlace[]> {
  const places = await keyPlaces(options, io);
  const [first] = places;
  if (first === undefined)
    throw usageError('say which keys: --keys FOLDER, or --config FILE with a files sink that has encrypt');
  actAsOwnerOf(first.path, KEYS);
  return places;
}

async function rotate(place: KeyPlace, fresh: Buffer, options: Options, io: Io): Promise<void> {
  const { path, master, config } = place;
  const ledger = config === null ? null : (await openProof(config)()).ledger;
  const store = await KeyStore.open(path, master, ledger).catch(refuse);
  try {
    const rotated = await store.rotate(fresh);
    if (options.json === true) print(io, JSON.stringify({ path, rotated }));
    else print(io, `${path}: ${rotated} keys rewrapped`);
  } finally {
    await store.close();
  }
}

/** A receiver that finds its keys in use is started again; a command is not. */
function refuse(error: unknown): never {
  const isInUse = error instanceof MillraceError && error.code === 'keys_in_use';
  throw isInUse ? new MillraceError('folder_in_use', error.detail, { cause: error }) : error;
}
