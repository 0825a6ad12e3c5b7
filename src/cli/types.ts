import { Argument, type Command } from 'commander';
import { messageOf } from '../core/errors.ts';
import { installCommand } from '../lib/installed.ts';
import { jsonSchemaOf, type JsonSchema } from '../observe/schema/json-schema.ts';
import { takeName } from '../tables/learned/infer/names.ts';
import { note, usageError, type Io } from './io.ts';
import { KEY_OPTIONS } from './key-options.ts';
import { writeOver } from './out-file.ts';
import { onlyTypes, seenOf } from './seen.ts';
import { commandOf, type OptionsOf } from './options.ts';

const LANGUAGES = ['ts', 'python', 'go'] as const;

type Language = (typeof LANGUAGES)[number];

const HELP = `
Examples:
  millrace types ts --out events.ts
  millrace types python daily.data.meal. --out events.py
  millrace types go --from ./data/archive --out events.go
  millrace types ts --from seen.json   what \`millrace schema --json\` wrote

The types are made of the events that were seen. A field is required when each of at least 20 objects had it. Times are strings.
Members whose names are data, such as foods or ids, become entries of a map. Events can have more fields: your code must ignore
unknown ones.

Needs quicktype-core beside millrace: npm install --global quicktype-core`;

const OPTIONS = {
  '--from <place>': 'instead of the receiver: an archive, or a file of `millrace schema --json`',
  '--out <file>': 'write the code to this file (default: stdout)',
  '--config <file>': 'the config of the receiver',
  ...KEY_OPTIONS,
};
type Options = OptionsOf<typeof OPTIONS>;

export function typesCommand(io: Io): Command {
  return commandOf('types', OPTIONS, HELP)
    .description('write typed code for the events that were seen: TypeScript, Python or Go')
    .addArgument(new Argument('<language>', 'the language').choices(LANGUAGES))
    .argument('[type...]', 'only event types that begin so')
    .action(async (language: Language, beginnings: readonly string[], options: Options) => {
      const types = onlyTypes(await seenOf(options, io), beginnings).filter(
        ({ fields }) => fields.length > 0,
      );
      if (types.length === 0) throw usageError('no events were seen yet, so there are no types to write');
      const schemas = types.map((type) => ({ name: type.type, schema: jsonSchemaOf(type) }));
      const code = await codeOf(language, schemas);
      if (options.out === undefined) io.stdout.write(code);
      else writeOver(`--out ${options.out}`, options.out, code);
      if (options.out !== undefined) note(io, `${types.length} event types in ${options.out}`);
    });
}

const RENDERED = {
  // Types only: JSON.parse makes the values.
  ts: { 'just-types': 'true' },
  python: { 'python-version': '3.7' },
  go: { package: 'events' },
} as const satisfies Record<Language, object>;

const COMMENT: Readonly<Record<Language, string>> = { ts: '//', python: '#', go: '//' };

/**
 * Code with a type for each schema, by quicktype.
 * @throws MillraceError usage where it is not installed
 */
async function codeOf(
  language: Language,
  schemas: readonly { readonly name: string; readonly schema: JsonSchema }[],
): Promise<string> {
  const { InputData, JSONSchemaInput, quicktype } = await import('quicktype-core').catch((error: unknown) => {
    throw usageError(
      `quicktype-core is not installed beside millrace: ${installCommand('quicktype-core')} (${messageOf(error)})`,
      { cause: error },
    );
  });

  const input = new JSONSchemaInput(undefined);
  const taken = new Set<string>();
  for (const { name, schema } of schemas)
    await input.addSource({ name: takeName(typeName(name), taken), schema: JSON.stringify(schema) });
  const inputData = new InputData();
  inputData.addInput(input);
  const { lines } = await quicktype({
    inputData,
    lang: language,
    // The events seen do not prove that a text is always a time, or one of a few words.
    inferDateTimes: false,
    inferEnums: false,
    rendererOptions: RENDERED[language],
  });
  return `${COMMENT[language]} Made by millrace types from the events that were seen; generate it again instead of changing it.\n${lines.join('\n')}`;
}

/** `DailyDataMealCreated` for `daily.data.meal.created`; parts that are data are left out. */
function typeName(type: string): string {
  const words = type.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const name = words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('');
  return /^[A-Za-z]/.test(name) ? name : `Event${name}`;
}
