/** A route table as the config has it. The first match decides. */
export interface Table {
  readonly routes: readonly Rule[];
}

interface Rule {
  readonly match: readonly string[] | '*';
  readonly to: readonly string[];
}

/** The sinks that an event of the type is due at. The oracle's own reading of a table. */
export function dueAt({ routes }: Table, type: string): readonly string[] {
  const rule = routes.find(({ match }) => match === '*' || match.some((prefix) => type.startsWith(prefix)));
  return rule?.to ?? [];
}

const PREFIXES = [['labtest.', 'lab_report.'], ['daily.'], ['historical.', 'provider.']];

/** Rules that send some types elsewhere, and the rest somewhere. */
export function randomTable(sinks: readonly string[], random: () => number): Table {
  const some = (): string[] => {
    const chosen = sinks.filter(() => random() < 0.5);
    const first = sinks[Math.floor(random() * sinks.length)] ?? '';
    return chosen.length > 0 ? chosen : [first];
  };
  const rules = PREFIXES.map((match) => ({ keep: random() < 0.7, match, to: some() }));
  return {
    routes: [
      ...rules.filter(({ keep }) => keep).map(({ match, to }) => ({ match, to })),
      { match: '*', to: some() },
    ],
  };
}
