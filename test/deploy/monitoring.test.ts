import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { CATALOGUE } from '../../src/core/errors.ts';
import { METRICS } from '../../src/observe/metrics/catalogue.ts';
import { temporaryFolder } from '../support/folders.ts';
import { anchorsOf } from '../support/markdown.ts';
import { ROOT, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { lacksProgram, skipped } from '../support/requirements.ts';

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly summary: string; readonly runbook_url: string };
}

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: { readonly x: number; readonly y: number; readonly w: number; readonly h: number };
  readonly targets?: readonly { readonly expr: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly definition?: string }[] };
  readonly annotations: { readonly list: readonly { readonly expr: string }[] };
}

const textOf = (path: string): string => readFileSync(join(ROOT, 'deploy', path), 'utf8');
const rules = (parse(textOf('helm/millrace/alerts.yml')) as { groups: { rules: Rule[] }[] }).groups.flatMap(
  (group) => group.rules,
);
const dashboard = JSON.parse(textOf('grafana/millrace.json')) as Dashboard;
const panels = dashboard.panels.filter(({ type }) => type !== 'row');
const queries = [
  ...rules.map(({ alert, expr }) => ({ where: alert, expr })),
  ...panels.flatMap(({ title, targets }) => (targets ?? []).map(({ expr }) => ({ where: title, expr }))),
  ...dashboard.annotations.list.map(({ expr }) => ({ where: 'annotation', expr })),
  ...dashboard.templating.list.flatMap(({ definition: expr }) =>
    expr === undefined ? [] : [{ where: 'variable', expr }],
  ),
];

/** Labels that Prometheus adds, and the one of a histogram's buckets. */
const ADDED = new Set(['instance', 'job', 'le']);

/** Series in a PromQL expression, with the labels that select from each. */
function seriesIn(expr: string): { name: string; labels: string[] }[] {
  return Array.from(
    expr.matchAll(/\b((?:millrace|nodejs|process)_[a-z0-9_]+)\s*(?:\{([^}]*)\})?/g),
    ([, name = '', selector = '']) => ({
      name,
      labels: Array.from(selector.matchAll(/([a-z_]+)\s*(?:=~|!~|!=|=)/g), ([, label = '']) => label),
    }),
  );
}

/** Labels that an expression groups by. */
function groupedBy(expr: string): string[] {
  return Array.from(expr.matchAll(/\bby\s*\(([^)]*)\)/g), ([, labels = '']) => labels.split(','))
    .flat()
    .map((label) => label.trim());
}

/** Names of the series that a running receiver exports. */
async function exportedSeries(): Promise<Set<string>> {
  const receiver = await Receiver.start(writeConfig(await temporaryFolder()));
  const response = await fetch(`${receiver.adminUrl}/metrics`);
  expect(response.status).toBe(200);
  const types = (await response.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm);
  return new Set(
    [...types].flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

describe('rules and dashboard ask for what the program exports', () => {
  test('every series is there', async () => {
    const exported = await exportedSeries();
    const asked = queries.flatMap(({ where, expr }) => seriesIn(expr).map(({ name }) => ({ where, name })));
    expect(asked.length).toBeGreaterThan(40);
    expect(asked.filter(({ name }) => !exported.has(name))).toEqual([]);
  });

  test('every label is one of the series’ own', () => {
    const labels = new Map(METRICS.map(({ name, labels: own }) => [name, own]));
    const wrong = queries.flatMap(({ where, expr }) =>
      seriesIn(expr).flatMap(({ name, labels: asked }) => {
        const own = labels.get(name) ?? labels.get(name.replace(/_(bucket|sum|count)$/, ''));
        if (own === undefined) return [];
        return [...asked, ...groupedBy(expr)]
          .filter((label) => !own.includes(label) && !ADDED.has(label))
          .map((label) => ({ where, name, label }));
      }),
    );
    expect(wrong).toEqual([]);
  });

  test('outcomes that a rule waits for are codes of the catalogue', () => {
    const expressions = rules.flatMap(({ expr }) => [...expr.matchAll(/outcome=~?"([^"]+)"/g)]);
    const known = [...Object.keys(CATALOGUE), 'accepted'];
    const patterns = expressions.flatMap(([, pattern = '']) => pattern.split('|'));
    expect(patterns.length).toBeGreaterThan(5);
    const lost = patterns.filter((pattern) => !known.some((code) => new RegExp(`^(${pattern})$`).test(code)));
    expect(lost).toEqual([]);
  });
});

test('every alert has a severity, a summary, and an entry in the run book; no entry is left over', () => {
  const anchors = anchorsOf('deploy/README.md');
  for (const { alert, labels, annotations } of rules) {
    expect(['critical', 'warning'], alert).toContain(labels.severity);
    expect(annotations.summary, alert).not.toBe('');
    expect(annotations.runbook_url).toBe(`deploy/README.md#${alert.toLowerCase()}`);
    expect([...anchors], alert).toContain(alert.toLowerCase());
  }
  const entries = [...anchors].filter((anchor) => /^millrace[a-z]+$/.test(anchor));
  expect(entries.sort()).toEqual(rules.map(({ alert }) => alert.toLowerCase()).sort());
});

test('every panel says what it shows, and none lies over another', () => {
  expect(panels.length).toBeGreaterThan(15);
  const taken = new Set<string>();
  for (const { title, description, gridPos } of dashboard.panels) {
    if (panels.some((panel) => panel.title === title)) expect(description ?? '', title).not.toBe('');
    expect(gridPos.x + gridPos.w, title).toBeLessThanOrEqual(24);
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1) {
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        expect(taken.has(`${x},${y}`), `${title} at ${x},${y}`).toBe(false);
        taken.add(`${x},${y}`);
      }
    }
  }
});

const lack = lacksProgram('promtool');

test.skipIf(lack !== null)(
  `Prometheus takes the rules, and they fire when they should${skipped(lack)}`,
  () => {
    const folder = join(ROOT, 'deploy/prometheus');
    for (const args of [
      ['check', 'rules', '../helm/millrace/alerts.yml'],
      ['test', 'rules', 'alerts.test.yml'],
      ['check', 'config', '--syntax-only', 'prometheus.yml'],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' });
      expect({ args, status }, stdout + stderr).toEqual({ args, status: 0 });
    }
  },
);
