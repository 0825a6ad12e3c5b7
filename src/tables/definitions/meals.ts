import { type Column, date, decimal, integer, text, timestamp } from '../definition.ts';
import { APP_BESIDE_SOURCE, PROVIDER_ID, SOURCE, TIMES } from './common.ts';
import { inside, rowsByName, table } from './table.ts';

/** Nutrients, each with the unit that the service documents, by the object that they are members of. */
const NUTRIENTS: readonly (readonly [at: string, names: string, prefix?: string])[] = [
  ['macros', 'carbs_g protein_g sugar_g'],
  ['macros.fats', 'total_g saturated_g monounsaturated_g polyunsaturated_g omega3_g omega6_g', 'fat_'],
  ['macros', 'alcohol_g water_g fibre_g cholesterol_g'],
  ['micros.minerals', 'sodium_mg potassium_mg calcium_mg phosphorus_mg magnesium_mg iron_mg zinc_mg'],
  ['micros.minerals', 'fluoride_mg chloride_mg'],
  ['micros.trace_elements', 'chromium_ug copper_mg iodine_ug manganese_mg molybdenum_ug selenium_ug'],
  ['micros.vitamins', 'vitamin_a_ug vitamin_b1_mg riboflavin_mg niacin_mg pantothenic_acid_mg vitamin_b6_mg'],
  ['micros.vitamins', 'biotin_ug vitamin_b12_ug vitamin_c_mg vitamin_d_ug vitamin_e_mg vitamin_k_ug'],
  ['micros.vitamins', 'folic_acid_ug'],
];

const UNITS: Readonly<Record<string, string>> = { g: 'g', mg: 'mg', ug: 'µg' };
const WORDS: Readonly<Record<string, string>> = {
  carbs: 'carbohydrates',
  omega3: 'omega-3',
  omega6: 'omega-6',
};

const nutrients = NUTRIENTS.flatMap(([at, names, prefix = '']) =>
  names.split(' ').map((name) => {
    const [member, unit = ''] = name.split(/_(?=[^_]+$)/);
    const words = `${prefix}${member}`.split('_').map((word) => WORDS[word] ?? word);
    return decimal(`${prefix}${name}`, words.join(' '), { from: `${at}.${member}`, unit: UNITS[unit] ?? '' });
  }),
);

/** Columns of the nutrition object that foods have and meals can have. */
const NUTRITION: readonly Column[] = [
  ...inside('energy', [
    decimal('value', 'energy', { unit: 'as `energy_unit` says; kcal when it says nothing' }),
    text('unit', 'unit of `energy_value`; kcal when it is null'),
  ]),
  ...nutrients,
];

export const MEALS = table({
  name: 'meals',
  description: 'Meal summaries, one meal a row. Its foods are in `meal_items`.',
  key: ['id'],
  newest: 'updated_at',
  events: ['daily.data.meal.'],
  columns: [
    text('id', 'the meal, UUID', { required: true }),
    text('user_id', 'owner, UUID'),
    text('name', 'name of the meal'),
    timestamp('timestamp', 'time of the meal'),
    date('calendar_date', 'day of the meal'),
    ...TIMES,
    PROVIDER_ID,
    integer('source_id', 'identifier of the source'),
    ...APP_BESIDE_SOURCE,
    integer('priority_id', 'rank among sources'),
    ...SOURCE.map((column) =>
      column.name === 'source_provider' ? { ...column, older: 'source.slug' } : column,
    ),
    ...NUTRITION,
  ],
  nested: [
    rowsByName('data', {
      name: 'meal_items',
      description: 'The foods of the meals, one a row.',
      key: ['meal_id', 'item_index'],
      columns: [
        text('meal_id', 'the meal, UUID', { from: { parent: 'id' }, required: true }),
        text('user_id', 'owner, UUID', { from: { parent: 'user_id' } }),
        timestamp('meal_timestamp', 'time of the meal', { from: { parent: 'timestamp' } }),
        timestamp('meal_updated_at', 'which version of the meal the food belongs to', {
          from: { parent: 'updated_at' },
        }),
        integer('item_index', 'position in the meal, from 0; the same food can stand in a meal twice', {
          from: { of: 'position' },
          required: true,
        }),
        text('name', 'name of the food, as in `Coffee, black, 1 tbsp(s)`', {
          from: { of: 'key' },
          required: true,
        }),
        ...NUTRITION,
      ],
    }),
  ],
});
