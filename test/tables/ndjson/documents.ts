import fc from 'fast-check';

/** JSON text of meals and bulk documents, in every spelling JSON allows. */

const white = fc.constantFrom('', '', '', ' ', '\n', '\t ', '\r\n');

/** A string as somebody may write it: any of it escaped. */
const quoted = fc
  .array(
    fc.oneof(
      fc.string({ maxLength: 3, unit: 'grapheme' }),
      fc.constantFrom(...'" \\ \n \0 \u0001 \u007f \u2028 / { ] é 😀 \ud800'.split(' ')),
    ),
    { maxLength: 5 },
  )
  .chain((parts) => spelled(parts.join('')));

/** @returns the text in quotes, some of its characters as `\uXXXX` or with a short escape */
function spelled(text: string): fc.Arbitrary<string> {
  return fc.array(fc.nat(9), { minLength: text.length, maxLength: text.length }).map((dice) => {
    const units = Array.from(dice, (die, i) => {
      const unit = text.charCodeAt(i);
      const short = SHORT[text.charAt(i)];
      if (short !== undefined && die < 5) return short;
      const must = unit < 0x20 || unit === 0x22 || unit === 0x5c || (unit >= 0xd800 && unit <= 0xdfff);
      if (!must && die > 2) return text.charAt(i);
      const digits = unit.toString(16).padStart(4, '0');
      return `\\u${die % 2 === 0 ? digits : digits.toUpperCase()}`;
    });
    return `"${units.join('')}"`;
  });
}

const SHORT: Readonly<Record<string, string>> = {
  '"': String.raw`\"`,
  '\\': String.raw`\\`,
  '/': String.raw`\/`,
  '\n': String.raw`\n`,
};

const words = (text: string): fc.Arbitrary<string> => fc.constantFrom(...text.split(' '));

const number = fc.oneof(
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  words(
    '1.10 -0 0e400 9007199254740993 9223372036854775807 9223372036854775808 1E400 -1e400 1e-400 1e-7 ' +
      '0.30000000000000004 12345678901234567890 12345678901234567890123 -1.5E+3 62.0 2.88e4 9.3e18 1e2',
  ),
);

const scalar = fc.oneof(quoted, number, fc.constantFrom('true', 'false', 'null'));

/** JSON text of any shape and spelling. */
const anyJson = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    fc
      .tuple(fc.array(tie('value'), { maxLength: 3 }), white)
      .map(([items, gap]) => `[${gap}${items.join(`${gap},${gap}`)}${gap}]`),
    fc
      .tuple(fc.array(fc.tuple(quoted, tie('value')), { maxLength: 3 }), white)
      .map(([members, gap]) => objectOf(members, gap)),
  ),
})).value;

function objectOf(members: readonly (readonly [string, string])[], gap: string): string {
  return `{${gap}${members.map(([key, value]) => `${key}${gap}:${gap}${value}`).join(`${gap},${gap}`)}${gap}}`;
}

/** Members of meals and foods, whatever their level: they meet where they belong often enough. */
const KEYS = (
  'id i\\u0064 user_id name timestamp updated_at source_id source energy macros micros __proto__ constructor ' +
  'calendar_date value unit carbs fats total minerals sodium slug provider'
)
  .split(' ')
  .map((key) => `"${key}"`);

const TIMES = [
  '2026-05-01T08:00:00Z',
  '2026-05-01',
  '2024-02-29 23:59:59.5-05:00',
  '2026-05-01T08:00:00.123456-05:00',
  '2026-05-01T08:00:00.9999999',
  '2026-05-01T08:00:00.123456789+05:30',
  '2026-02-30',
  '12:00',
  '9999-12-31T23:59:59-12:00',
  '9999-12-31T11:00:00-12:00',
  '0001-01-01T00:00:00+14:00',
];

const likely = fc.letrec<{ value: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 5, depthSize: 'medium' },
    fc.oneof(
      anyJson,
      fc.constantFrom('"a"', '12.50', '7', 'null', '{}'),
      fc.constantFrom(...TIMES).chain(spelled),
    ),
    fc
      .tuple(fc.array(fc.tuple(fc.constantFrom(...KEYS), tie('value')), { maxLength: 6 }), white)
      .map(([members, gap]) => objectOf(members, gap)),
  ),
})).value;

/** Foods by their names, most of them objects. */
const foods = fc
  .tuple(
    fc.array(fc.tuple(quoted, fc.oneof({ weight: 9, arbitrary: likely }, anyJson)), { maxLength: 3 }),
    white,
  )
  .map(([members, gap]) => objectOf(members, gap));

function mealWith(data: fc.Arbitrary<string>): fc.Arbitrary<string> {
  const member = fc.oneof(
    { weight: 6, arbitrary: fc.tuple(fc.constantFrom(...KEYS), likely) },
    { weight: 1, arbitrary: fc.tuple(fc.constant('"data"'), data) },
  );
  return fc
    .tuple(fc.array(member, { maxLength: 8 }), quoted, white, fc.boolean())
    .map(([members, id, gap, front]) =>
      objectOf(front ? [['"id"', id], ...members] : [...members, ['"id"', id]], gap),
    );
}

/** Something like a meal, well-formed, not always valid for a row. */
export const anyMeal = mealWith(fc.oneof({ weight: 4, arbitrary: foods }, likely));

/** A meal that is not taken for a container when it stands alone: its `data` is no array. */
export const lineMeal = mealWith(foods).map((text) => text.replaceAll(/[\r\n]/g, ' '));

/** Sizes of chunks, over and over: some are smaller than any element, some hold many. */
export const chunkSizes = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 40 }), fc.integer({ min: 100, max: 5000 })),
  { minLength: 1, maxLength: 5 },
);

/** `{"meals":[…]}` with other members around, and its elements as they stand in it. */
export const bulkDocument = fc
  .record({
    elements: fc.array(anyMeal, { maxLength: 6 }),
    other: fc.oneof(anyJson, fc.constant('2')),
    gap: white,
  })
  .map(({ elements, other, gap }) => {
    const array = `[${gap}${elements.join(`${gap},${gap}`)}${gap}]`;
    return {
      elements,
      text: `{${gap}"total":${other}${gap},"meals"${gap}:${gap}${array},"page":${other}}`,
    };
  });
