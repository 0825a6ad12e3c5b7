import { Command } from 'commander';
import { MillraceError } from '../core/errors.ts';
import { KeyStore } from '../seal/key-store.ts';
import { newMasterKey } from '../seal/master-key.ts';
import { addKeyOptions, keyPlaces, masterKeyFrom, type KeyOptions, type KeyPlace } from './key-options.ts';
import { note, print, type Io } from './io.ts';

const HELP = `
Examples:
  millrace keys generate
  millrace keys status --config config/millrace.yaml
  millrace keys rotate --config config/millrace.yaml --new-master-key-env NEW_MASTER_KEY
  millrace keys rotate --keys ./data/keys --master-key-env OLD --new-master-key-env NEW

A files sink with encrypt seals each record with a key of its user's own; the keys lie in its store, wrapped by the master
key. generate prints a new master key: keep it apart from the store and from the archive, for without it nothing opens.
rotate wraps every key anew under another master key while no receiver runs; the archive is not touched. Afterwards give
the receiver the new one, and destroy the old one: only then are older copies of the store of no use.
Exit codes: 0 done, 1 failed or in use, 2 usage, config, or another master key.`;

interface Options extends KeyOptions {
  readonly newMasterKeyEnv?: string;
  readonly json?: boolean;
}

/** `millrace keys …`: the keys of sealed archives. */
export function keysCommand(io: Io): Command {
  const keys = new Command('keys')
    .description('make and look after the keys of sealed archives')
    .addHelpText('after', HELP);
  keys
    .command('generate')
    .description('print a new master key')
    .action(() => print(io, newMasterKey()));
  withPlace(keys.command('status').description('count the keys of a store'))
    .option('--json', 'print one JSON document: {path, active, destroyed, damaged}')
    .action(async (options: Options) => {
      for (const { path, master } of await placesOf(options, io)) {
        const { counts } = await KeyStore.read(path, master);
        if (options.json === true) print(io, JSON.stringify({ path, ...counts }));
        else
          print(
            io,
            `${path}: ${counts.active} keys, ${counts.destroyed} destroyed, ${counts.damaged} damaged`,
          );
      }
    });
  withPlace(keys.command('rotate').description('wrap every key anew under another master key'))
    .requiredOption('--new-master-key-env <name>', 'the variable with the new master key')
    .option('--json', 'print one JSON document: {path, rotated}')
    .action(async (options: Options) => {
      const fresh = masterKeyFrom(io, '--new-master-key-env', options.newMasterKeyEnv ?? '');
      const places = await placesOf(options, io);
      for (const place of places) await rotate(place, fresh, options, io);
      note(io, 'give the receiver the new master key before it starts, and destroy the old one');
    });
  for (const command of keys.commands) command.addHelpText('after', HELP);
  return keys;
}

function withPlace(command: Command): Command {
  return addKeyOptions(command.option('--config <file>', 'the config whose sinks are meant'));
}

async function placesOf(options: Options, io: Io): Promise<KeyPlace[]> {
  const places = await keyPlaces(options, io);
  if (places.length === 0)
    throw new MillraceError(
      'usage',
      'say which keys: --keys FOLDER, or --config FILE with a files sink that has encrypt',
    );
  return places;
}

async function rotate({ path, master }: KeyPlace, fresh: Buffer, options: Options, io: Io): Promise<void> {
  const store = await KeyStore.open(path, master);
  try {
    const rotated = await store.rotate(fresh);
    if (options.json === true) print(io, JSON.stringify({ path, rotated }));
    else print(io, `${path}: ${rotated} keys wrapped anew`);
  } finally {
    await store.close();
  }
}
