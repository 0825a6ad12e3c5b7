import {
  date,
  type EventOrigin,
  integer,
  text,
  timestamp,
  type TableDefinition,
  decimal,
  type Column,
} from '../definition.ts';
import { SOURCE, TIMES } from './common.ts';

/** Nutrients by their path below a nutrition object. The unit is what the service documents for each. */
const NUTRIENTS = {
  'macros.carbs': 'carbs_g',
  'macros.protein': 'protein_g',
  'macros.sugar': 'sugar_g',
  'macros.fats.total': 'fat_total_g',
  'macros.fats.saturated': 'fat_saturated_g',
  'macros.fats.monounsaturated': 'fat_monounsaturated_g',
  'macros.fats.polyunsaturated': 'fat_polyunsaturated_g',
  'macros.fats.omega3': 'fat_omega3_g',
  'macros.fats.omega6': 'fat_omega6_g',
  'macros.alcohol': 'alcohol_g',
  'macros.water': 'water_g',
  'macros.fibre': 'fibre_g',
  'macros.cholesterol': 'cholesterol_g',
  'micros.minerals.sodium': 'sodium_mg',
  'micros.minerals.potassium': 'potassium_mg',
  'micros.minerals.calcium': 'calcium_mg',
  'micros.minerals.phosphorus': 'phosphorus_mg',
  'micros.minerals.magnesium': 'magnesium_mg',
  'micros.minerals.iron': 'iron_mg',
  'micros.minerals.zinc': 'zinc_mg',
  'micros.minerals.fluoride': 'fluoride_mg',
  'micros.minerals.chloride': 'chloride_mg',
  'micros.trace_elements.chromium': 'chromium_ug',
  'micros.trace_elements.copper': 'copper_mg',
  'micros.trace_elements.iodine': 'iodine_ug',
  'micros.trace_elements.manganese': 'manganese_mg',
  'micros.trace_elements.molybdenum': 'molybdenum_ug',
  'micros.trace_elements.selenium': 'selenium_ug',
  'micros.vitamins.vitamin_a': 'vitamin_a_ug',
  'micros.vitamins.vitamin_b1': 'vitamin_b1_mg',
  'micros.vitamins.riboflavin': 'riboflavin_mg',
  'micros.vitamins.niacin': 'niacin_mg',
  'micros.vitamins.pantothenic_acid': 'pantothenic_acid_mg',
  'micros.vitamins.vitamin_b6': 'vitamin_b6_mg',
  'micros.vitamins.biotin': 'biotin_ug',
  'micros.vitamins.vitamin_b12': 'vitamin_b12_ug',
  'micros.vitamins.vitamin_c': 'vitamin_c_mg',
  'micros.vitamins.vitamin_d': 'vitamin_d_ug',
  'micros.vitamins.vitamin_e': 'vitamin_e_mg',
  'micros.vitamins.vitamin_k': 'vitamin_k_ug',
  'micros.vitamins.folic_acid': 'folic_acid_ug',
};

const UNITS: Readonly<Record<string, string>> = { g: 'g', mg: 'mg', ug: 'µg' };

const WORDS: Readonly<Record<string, string>> = {
  carbs: 'carbohydrates',
  omega3: 'omega-3',
  omega6: 'omega-6',
};

const nutrients = Object.entries(NUTRIENTS).map(([from, name]) => {
  const words = name.split('_');
  const unit = UNITS[words.pop() ?? ''] ?? '';
  return decimal(name, words.map((word) => WORDS[word] ?? word).join(' '), { from, unit });
});

/** Columns of a nutrition object, which foods have and meals can have. */
const NUTRITION: readonly Column[] = [
  decimal('energy_value', 'energy', {
    from: 'energy.value',
    unit: 'as `energy_unit` says; kcal when it says nothing',
  }),
  text('energy_unit', 'unit of `energy_value`; kcal when it is null', { from: 'energy.unit' }),
  ...nutrients,
];

const EVENTS: EventOrigin = { types: ['daily.data.meal.'], member: 'data' };

export const MEAL_ITEMS: TableDefinition = {
  name: 'meal_items',
  description: 'The foods of the meals, one a row.',
  key: ['meal_id', 'item_index'],
  events: EVENTS,
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
};

export const MEALS: TableDefinition = {
  name: 'meals',
  description: 'Meal summaries, one meal a row. Its foods are in `meal_items`.',
  key: ['id'],
  newest: 'updated_at',
  events: EVENTS,
  columns: [
    text('id', 'the meal, UUID', { required: true }),
    text('user_id', 'owner, UUID'),
    text('name', 'name of the meal'),
    timestamp('timestamp', 'time of the meal'),
    date('calendar_date', 'day of the meal'),
    ...TIMES,
    text('provider_id', 'identifier at the provider'),
    integer('source_id', 'identifier of the source'),
    text('source_app_id', 'app, beside the source'),
    text('source_device_id', 'device beside the source, UUID'),
    integer('priority_id', 'rank among sources'),
    ...SOURCE.map((column) =>
      column.name === 'source_provider' ? { ...column, older: 'source.slug' } : column,
    ),
    ...NUTRITION,
  ],
  nested: [{ at: 'data', each: 'map', table: MEAL_ITEMS }],
};
