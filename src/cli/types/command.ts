import { Argument, Command } from 'commander';
import { jsonSchemaOf } from '../../schema/json-schema.ts';
import { note, usageError, type Io } from '../io.ts';
import { addKeyOptions } from '../key-options.ts';
import { writeOver } from '../out-file.ts';
import { onlyTypes, seenOf, type SeenOptions } from '../seen.ts';
import { codeOf, LANGUAGES, type Language } from './code.ts';

const HELP = `
Examples:
  millrace types ts --out events.ts
  millrace types python daily.data.meal. --out events.py
  millrace types go --from ./data/archive --out events.go
  millrace types ts --from seen.json                    (what \`millrace schema --json\` wrote)

The types are of what was seen: a field that every one of at least 20 objects had is required, others are optional. Times are
texts. A member whose name is data, such as a food or an id, becomes an entry of a map. Events can have more fields than these:
have your code pass over what it does not know.

Needs quicktype-core beside millrace: npm install quicktype-core`;

interface Options extends SeenOptions {
  readonly out?: string;
}

export function typesCommand(io: Io): Command {
  const command = new Command('types')
    .description('write typed code for the events that were seen: TypeScript, Python or Go')
    .addArgument(new Argument('<language>', 'the language').choices(LANGUAGES))
    .argument('[type...]', 'only event types that begin so')
    .option('--from <place>', 'instead of the receiver: an archive, or a file of `millrace schema --json`')
    .option('--out <file>', 'write the code to this file (default: stdout)')
    .option('--config <file>', 'the config of the receiver')
    .addHelpText('after', HELP)
    .action(async (language: Language, beginnings: readonly string[], options: Options) => {
      const types = onlyTypes(await seenOf(options, io), beginnings).filter(
        ({ fields }) => fields.length > 0,
      );
      if (types.length === 0) throw usageError('no events were seen yet: there is nothing to write types of');
      const schemas = types.map((type) => ({ name: type.type, schema: jsonSchemaOf(type) }));
      const code = await codeOf(language, schemas);
      if (options.out === undefined) io.stdout.write(code);
      else writeOver(`--out ${options.out}`, options.out, code);
      if (options.out !== undefined) note(io, `${types.length} event types in ${options.out}`);
    });
  return addKeyOptions(command);
}
