import { Command } from 'commander';
import { pullReference, RESOURCES } from '../backfill/reference.ts';
import { EXIT } from '../core/errors.ts';
import { note, print, usageError, type Io } from './io.ts';
import { collect, readAs, textOf } from './options.ts';
import { owningFolder } from './own-folder.ts';
import { withService, type ServiceFlags } from './service.ts';

const NAMES = Object.keys(RESOURCES).join(', ');

const HELP = `
Examples:
  millrace pull markers --out ./data/reference
  millrace pull areas --zip 10001 --zip 94103 --out ./data/reference
  millrace pull insurance --users-file users.txt --out ./data/reference

Resources: ${NAMES}. Writes one file for the table and one for each nested table; \`millrace schema\` prints the matching DDL.
The key comes from MILLRACE_SERVICE_API_KEY or service.apiKey. For meals see \`millrace backfill\`.
Exit codes: 0 done, 1 failed, 2 usage or config, 3 done, but some rows were rejected.`;

interface Options extends ServiceFlags {
  readonly out: string;
  readonly user?: readonly string[];
  readonly usersFile?: string;
  readonly zip?: readonly string[];
}

/** `millrace pull`: reference data from the service into tables. */
export function pullCommand(io: Io): Command {
  return new Command('pull')
    .description('fetch reference data from the service into tables')
    .argument('<resource>', NAMES)
    .requiredOption('--out <dir>', 'folder of the tables')
    .option('--user <id>', 'a user, for insurance; may be repeated', collect)
    .option('--users-file <file>', 'users, one a line')
    .option('--zip <code>', 'a zip code of five digits, for areas; may be repeated', collect)
    .option('--config <file>', 'the config file, for its service section')
    .option('--base-url <url>', 'address of the service')
    .option('--json', 'print one JSON object')
    .addHelpText('after', HELP)
    .action(async (name: string, options: Options) => {
      const resource = Object.hasOwn(RESOURCES, name) ? RESOURCES[name] : undefined;
      if (resource === undefined) throw usageError(`${name} is not one of ${NAMES}`);
      const query = { users: usersOf(options), zipCodes: options.zip ?? [] };
      if (resource.needs === 'users' && query.users.length === 0) throw usageError(`${name} needs --user`);
      if (resource.needs === 'zipCodes' && query.zipCodes.length === 0)
        throw usageError(`${name} needs --zip`);
      const summary = await withService(io, options, (service) =>
        owningFolder(options.out, () => pullReference(service, resource, query, options.out, io.signal)),
      );
      for (const field of summary.unknown_fields) note(io, `${field} has no column; it is in extra`);
      if (options.json === true) print(io, JSON.stringify({ ok: summary.rejects === 0, ...summary }));
      else for (const [table, rows] of Object.entries(summary.rows)) print(io, `${table.padEnd(26)} ${rows}`);
      io.setExit(summary.rejects === 0 ? EXIT.done : EXIT.partial);
    });
}

function usersOf({ user = [], usersFile }: Options): readonly string[] {
  if (usersFile === undefined) return user;
  return [...user, ...readAs('--users-file', usersFile, textOf).split(/\s+/).filter(Boolean)];
}
