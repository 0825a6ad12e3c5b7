import { messageOf } from '../../core/errors.ts';
import type { JsonSchema } from '../../schema/json-schema.ts';
import { takeName } from '../../warehouse/learned/infer/names.ts';
import { usageError } from '../io.ts';

export const LANGUAGES = ['ts', 'python', 'go'] as const;

export type Language = (typeof LANGUAGES)[number];

const RENDERED = {
  // Types and nothing that runs: JSON.parse makes the values.
  ts: { 'just-types': 'true' },
  python: { 'python-version': '3.7' },
  go: { package: 'events' },
} as const satisfies Record<Language, object>;

const COMMENT: Readonly<Record<Language, string>> = { ts: '//', python: '#', go: '//' };

/**
 * Code with a type for each schema, by quicktype.
 * @throws MillraceError usage where it is not installed
 */
export async function codeOf(
  language: Language,
  schemas: readonly { readonly name: string; readonly schema: JsonSchema }[],
): Promise<string> {
  const { InputData, JSONSchemaInput, quicktype } = await import('quicktype-core').catch((error: unknown) => {
    throw usageError(
      `quicktype-core is not installed beside millrace: npm install quicktype-core (${messageOf(error)})`,
      { cause: error },
    );
  });
  // Nothing is fetched: a schema refers to nothing.
  const input = new JSONSchemaInput(undefined);
  const taken = new Set<string>();
  for (const { name, schema } of schemas)
    await input.addSource({ name: takeName(typeName(name), taken), schema: JSON.stringify(schema) });
  const inputData = new InputData();
  inputData.addInput(input);
  const { lines } = await quicktype({
    inputData,
    lang: language,
    // What was seen says neither that texts are times nor that there are no others.
    inferDateTimes: false,
    inferEnums: false,
    rendererOptions: RENDERED[language],
  });
  return `${COMMENT[language]} Made by millrace types from the events that were seen; make it anew instead of changing it.\n${lines.join('\n')}`;
}

/** `daily.data.meal.created` to `DailyDataMealCreated`; a part that is data has no name. */
function typeName(type: string): string {
  const words = type.split(/[^A-Za-z0-9]+/).filter((word) => word !== '');
  const name = words.map((word) => word[0]?.toUpperCase() + word.slice(1)).join('');
  return /^[A-Za-z]/.test(name) ? name : `Event${name}`;
}
