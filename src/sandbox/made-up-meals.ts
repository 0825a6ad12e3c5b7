import {
  DAY_MS,
  dayOf,
  stamp,
  type HealthPlan,
  type Json,
  type Range,
  type Subject,
} from './made-up-health.ts';
import { pick, randomOf, uuidOf, type Name } from './seeded.ts';

/** Meals in order of time, one by one: a range can be larger than memory. The sources of the user take turns. */
export function* madeUpMeals(
  { seed, sinceMs, days, mealsPerDay }: Omit<HealthPlan, 'samplesPerDay'> & { readonly mealsPerDay: number },
  { id, sources }: Pick<Subject, 'id' | 'sources'>,
  { startMs, endMs, provider: only }: Range,
): Generator<Json> {
  const first = Math.max(0, Math.floor((startMs - sinceMs) / DAY_MS));
  const last = Math.min(days - 1, Math.floor((endMs - sinceMs) / DAY_MS));
  for (let day = first; day <= last; day += 1) {
    for (let n = 0; n < mealsPerDay; n += 1) {
      const at = sinceMs + day * DAY_MS + timeOfDay(n, mealsPerDay);
      if (at < startMs || at > endMs) continue;
      const provider = sources[(day + n) % sources.length];
      if (provider === undefined || (only ?? provider) !== provider) continue;
      yield meal(seed, id, provider, day, n, at);
    }
  }
}

/** Spread from 07:00 to 21:00, in whole seconds. */
function timeOfDay(n: number, mealsPerDay: number): number {
  return Math.floor((7 + (14 * (n + 0.5)) / mealsPerDay) * 3600) * 1000;
}

function meal(seed: Name, user: string, provider: string, day: number, n: number, at: number): Json {
  const random = randomOf(seed, user, day, n);
  // Some were corrected later.
  const corrected = random() < 0.1 ? DAY_MS : 0;
  const device = `made-up-device-${user.slice(0, 4)}`;
  // The form of the oldest clients.
  const source =
    random() < 0.04
      ? { provider, name: 'Made up', slug: provider, logo: 'https://made-up.invalid/logo.png' }
      : { app_id: 'made.up.app', device_id: device, provider, type: pick(random, ['app', 'phone']) };
  return {
    id: uuidOf(seed, 'meal', user, day, n),
    user_id: user,
    name: `Made-up ${pick(random, ['breakfast', 'lunch', 'dinner', 'snack'])}`,
    timestamp: stamp(at),
    calendar_date: dayOf(at),
    created_at: stamp(at + 60_000),
    updated_at: stamp(at + 60_000 + corrected),
    provider_id: `made-up-${day}-${n}`,
    source_id: 7,
    source_app_id: 'made.up.app',
    source_device_id: device,
    priority_id: 1,
    source: isFull(day)
      ? { ...source, sport: 'walking', workout_id: uuidOf(seed, 'workout', user, day) }
      : source,
    ...(isFull(day) ? fullNutrition(400 + 10 * n) : { energy: null }),
    data: isFull(day) ? { ...foods(random), [MEASURED]: fullNutrition(100 + n) } : foods(random),
  };
}

/** On some days meals have every field. */
function isFull(day: number): boolean {
  return day % 7 === 0;
}

const MEASURED = 'Ration, made up, measured in full';

const FOODS = [
  'Porridge, made up, 1 bowl',
  'Coffee, black, 1 tbsp(s)',
  'Crème brûlée, made up, 1 ramekin',
  'Rice "imaginary", cooked, 100 g',
  'Apple, made up, 1 piece',
  'Soup of nothing, 250 ml',
] as const;

function foods(random: () => number): Record<string, object> {
  const eaten: Record<string, object> = {};
  const courses = 1 + Math.floor(random() * 3);
  for (let course = 0; course < courses; course += 1) {
    const number = (most: number): number => Math.round(random() * most * 100) / 100;
    const total = number(20);
    const fats =
      random() < 0.3
        ? { total }
        : {
            total,
            saturated: number(5),
            monounsaturated: number(5),
            polyunsaturated: number(5),
            omega3: 0.1,
            omega6: 0.2,
          };
    eaten[pick(random, FOODS)] = {
      energy: { unit: 'kcal', value: number(600) },
      macros: { carbs: number(80), protein: number(30), sugar: number(20), fats },
      micros: { minerals: { sodium: number(400) } },
    };
  }
  return eaten;
}

/** A nutrition object with every field, of a food or a whole meal. */
function fullNutrition(kcal: number): Readonly<Record<'energy' | 'macros' | 'micros', object>> {
  const share = (amount: number): number => Math.round(amount * kcal) / 1000;
  const shares = (amounts: Readonly<Record<string, number>>): Record<string, number> =>
    Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, share(amount)]));
  const { fats, ...macros } = MACROS;
  return {
    energy: { unit: 'kcal', value: kcal },
    macros: { ...shares(macros), fats: shares(fats) },
    micros: {
      minerals: shares(MINERALS),
      trace_elements: shares(TRACE_ELEMENTS),
      vitamins: shares(VITAMINS),
    },
  };
}

/** Grams in 1,000 kcal. */
const MACROS = {
  carbs: 120,
  protein: 40,
  sugar: 30,
  alcohol: 1,
  water: 400,
  fibre: 14,
  cholesterol: 0.1,
  fats: { total: 36, saturated: 12, monounsaturated: 13, polyunsaturated: 7, omega3: 1, omega6: 5 },
};

/** Milligrams. */
const MINERALS = {
  sodium: 900,
  potassium: 1500,
  calcium: 400,
  phosphorus: 500,
  magnesium: 150,
  iron: 6,
  zinc: 5,
  fluoride: 1,
  chloride: 1100,
};

/** Micrograms; copper and manganese in milligrams. */
const TRACE_ELEMENTS = {
  chromium: 15,
  copper: 0.4,
  iodine: 70,
  manganese: 1,
  molybdenum: 20,
  selenium: 25,
};

/** Milligrams; vitamins A, B12, D and K, biotin and folic acid in micrograms. */
const VITAMINS = {
  vitamin_a: 400,
  vitamin_b1: 0.5,
  riboflavin: 0.6,
  niacin: 7,
  pantothenic_acid: 2.5,
  vitamin_b6: 0.7,
  biotin: 15,
  vitamin_b12: 1.2,
  vitamin_c: 45,
  vitamin_d: 5,
  vitamin_e: 6,
  vitamin_k: 35,
  folic_acid: 150,
};
