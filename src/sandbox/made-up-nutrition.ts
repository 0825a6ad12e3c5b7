/** What a nutrition object can have at most, for a serving of so many kilocalories: a food, or a whole meal. */
export function fullNutrition(kcal: number): Readonly<Record<'energy' | 'macros' | 'micros', object>> {
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

/** Amounts in 1,000 kcal; grams. */
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
