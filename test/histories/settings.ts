import fc from 'fast-check';

/** A config, as far as delivering goes. */
export interface Settings {
  readonly sinks: readonly string[];
  readonly routes: readonly { readonly type: string; readonly to: readonly string[] }[];
  readonly continues: { readonly heir: string; readonly old: string } | null;
}

export const SINKS = ['a', 'b', 'c', 'd'] as const;
export const TYPES = ['t0.', 't1.', 't2.'] as const;

/** Any config over four sinks and three types; sometimes one sink continues for another. */
export const anySettings: fc.Arbitrary<Settings> = fc
  .record({
    sinks: fc.uniqueArray(fc.constantFrom(...SINKS), { minLength: 1, maxLength: 4 }),
    masks: fc.tuple(fc.nat(15), fc.nat(15), fc.nat(15)),
    heir: fc.option(fc.tuple(fc.constantFrom(...SINKS), fc.constantFrom(...SINKS))),
  })
  .map(({ sinks, masks, heir }) => {
    const routes = TYPES.map((type, at) => ({
      type,
      to: sinks.filter((name) => ((masks[at] ?? 0) >> SINKS.indexOf(name)) % 2 === 1),
    }));
    const valid = heir !== null && sinks.includes(heir[0]) && !sinks.includes(heir[1]);
    return { sinks, routes, continues: valid ? { heir: heir[0], old: heir[1] } : null };
  });

/** The same, with the sinks of these names kept, although no route names them. */
export function withSinks({ sinks, routes }: Settings, names: readonly string[]): Settings {
  return { sinks: [...new Set([...sinks, ...names])], routes, continues: null };
}
