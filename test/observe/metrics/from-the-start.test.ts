import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { INVALID_CODES } from '../../../src/receive/validate/envelope.ts';
import { temporaryFolder } from '../../support/folders.ts';
import { ROOT, writeConfig } from '../../support/millrace.ts';
import { Receiver } from '../../support/receiver.ts';

const RULES = parse(readFileSync(join(ROOT, 'deploy/helm/millrace/alerts.yml'), 'utf8')) as {
  readonly groups: readonly {
    readonly rules: readonly { readonly alert: string; readonly expr: string }[];
  }[];
};

/** Series that a rule takes an increase of, with the pattern of the outcomes in it. */
function increasesIn(expr: string): { name: string; outcome: string }[] {
  const found = expr.matchAll(/\b(?:increase|rate)\(\s*(\w+)(?:\{\s*outcome=~?"([^"]*)"\s*\})?\[/g);
  return Array.from(found, ([, name = '', outcome = '.*']) => ({ name, outcome }));
}

test('each series that an alert takes an increase of is there at 0 before the first event', async () => {
  const folder = await temporaryFolder();
  const receiver = await Receiver.start(
    writeConfig(folder, {
      sinks: { lake: { type: 'files', path: join(folder, 'lake') }, out: { type: 'stdout' } },
    }),
  );
  const text = await (await fetch(`${receiver.adminUrl}/metrics`)).text();
  const samples = Array.from(
    text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm),
    ([, name, labels = '', value]) => ({
      name,
      labels,
      value,
    }),
  );
  const zeros = (name: string): string[] =>
    samples.filter((each) => each.name === name && each.value === '0').map(({ labels }) => labels);
  const increases = RULES.groups.flatMap(({ rules }) =>
    rules.flatMap(({ alert, expr }) => increasesIn(expr).map((series) => ({ alert, ...series }))),
  );
  expect(increases.length).toBeGreaterThan(7);
  const missing = increases.filter(({ name, outcome }) =>
    outcome
      .split('|')
      .some(
        (one) =>
          !zeros(name).some((labels) => outcome === '.*' || new RegExp(`outcome="${one}"`).test(labels)),
      ),
  );
  expect(missing).toEqual([]);
  const codes = [...INVALID_CODES, 'id_reused', 'encoding_unknown', 'encoding_broken'];
  expect(zeros('millrace_quarantined_total').toSorted()).toEqual(
    codes.map((code) => `code="${code}"`).toSorted(),
  );
  for (const sink of ['lake', 'out'])
    expect(zeros('millrace_sink_dead_letters_total')).toContain(`sink="${sink}",code="gave_up"`);
});
