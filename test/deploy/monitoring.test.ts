import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
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
  const anchors = anchorsOf('docs/run-book.md');
  for (const { alert, labels, annotations } of rules) {
    expect(['critical', 'warning'], alert).toContain(labels.severity);
    expect(annotations.summary, alert).not.toBe('');
    expect(annotations.runbook_url).toBe(`docs/run-book.md#${alert.toLowerCase()}`);
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

/** An alert's series as a scrape has them, minutes at which it is quiet, fires and has ended, and what it says. */
interface AlertCase {
  readonly alert: string;
  /** Values are a minute apart: `0+5x10` is 0, 5 … 50. */
  readonly series: Readonly<Record<string, string>>;
  readonly minutes: readonly [quiet: number, fires: number, ended: number];
  readonly labels?: Readonly<Record<string, string>>;
  readonly summary: string;
}

const sink = (metric: string): string => `millrace_sink_${metric}{sink="hubs"}`;
const outcome = (name: string): string => `millrace_events_total{source="webhooks", outcome="${name}"}`;
/** Every observation of so many minutes takes longer than the first bound and less than the second. */
const histogram = (name: string, least: string, most: string, minutes: number): Record<string, string> => ({
  [`${name}_bucket{le="${least}"}`]: '0x300',
  [`${name}_bucket{le="${most}"}`]: `0+10x${minutes} ${10 * minutes}x300`,
  [`${name}_bucket{le="+Inf"}`]: `0+10x${minutes} ${10 * minutes}x300`,
});

const CASES: readonly AlertCase[] = [
  {
    alert: 'MillraceDown',
    series: { up: '1x5 0x10 1x100' },
    minutes: [7, 9, 17],
    summary: 'a does not answer',
  },
  {
    alert: 'MillraceNotReady',
    series: { millrace_ready: '1x5 0x10 1x100' },
    minutes: [9, 12, 17],
    summary: 'a takes no deliveries',
  },
  {
    alert: 'MillraceRefusing',
    series: { [outcome('accepted')]: '0+9x200', [outcome('journal_full')]: '0x5 1+1x20 21x100' },
    minutes: [9, 14, 35],
    labels: { outcome: 'journal_full' },
    summary: 'a answers deliveries with journal_full',
  },
  {
    alert: 'MillraceJournalFilling',
    series: { [sink('backlog_bytes')]: '79x5 81x20 10x100', millrace_journal_max_bytes: '100x200' },
    minutes: [14, 17, 27],
    summary: 'what waits in the journal of a fills more than 80 % of it',
  },
  {
    alert: 'MillraceJournalWillFill',
    series: { [sink('backlog_bytes')]: '40+1x50 10x200', millrace_journal_max_bytes: '100x300' },
    minutes: [25, 40, 55],
    summary: 'at this rate the journal of a is full within six hours',
  },
  {
    alert: 'MillraceSinkDown',
    series: { [sink('up')]: '1x5 0x10 1x100' },
    minutes: [9, 12, 17],
    labels: { sink: 'hubs' },
    summary: 'sink hubs of a takes no events',
  },
  {
    alert: 'MillraceSinkTrouble',
    series: {
      'millrace_sink_trouble_since_timestamp_seconds{sink="hubs", code="unfinished"}':
        '_x5 1800000000x10 _x100',
    },
    minutes: [5, 8, 22],
    labels: { sink: 'hubs', code: 'unfinished' },
    summary: 'sink hubs of a is in trouble: unfinished',
  },
  {
    alert: 'MillraceRecordsLost',
    series: { [sink('lost_records')]: '0x5 30x10 0x100' },
    minutes: [5, 7, 17],
    labels: { sink: 'hubs' },
    summary: '30 records that sink hubs of a had confirmed are gone',
  },
  {
    alert: 'MillraceSinkBehind',
    series: { [sink('backlog_age_seconds')]: '0+60x25 0x100' },
    minutes: [20, 25, 27],
    labels: { sink: 'hubs' },
    summary: 'sink hubs of a is 25m 0s behind',
  },
  {
    alert: 'MillraceDeadLetters',
    series: { millrace_dead_letter_events: '0x5 3x20 0x100' },
    minutes: [14, 17, 27],
    summary: '3 dead letters at a wait for a decision',
  },
  {
    // A first burst, which is over within a scrape.
    alert: 'MillraceQuarantine',
    series: { 'millrace_quarantined_total{code="team_missing"}': '0x5 500x200' },
    minutes: [5, 8, 70],
    labels: { code: 'team_missing' },
    summary: 'a puts events in quarantine: team_missing',
  },
  {
    alert: 'MillraceNewType',
    series: { 'millrace_schema_first_seen_total{what="type"}': '0x5 1x200' },
    minutes: [5, 8, 70],
    summary: 'a has received an event type for the first time',
  },
  {
    alert: 'MillraceSignaturesRefused',
    series: { [outcome('accepted')]: '0+10x300', [outcome('signature_invalid')]: '0x5 5+5x30 155x300' },
    minutes: [10, 25, 60],
    summary: 'more than a fifth of the deliveries at a are not signed as they should be',
  },
  {
    alert: 'MillraceSilent',
    series: { [outcome('accepted')]: '0+1x1440 1440x600 1440+1x600' },
    minutes: [1440, 1860, 2060],
    summary: 'no event for six hours; there were some at this time yesterday',
  },
  {
    alert: 'MillraceSlowCommits',
    series: histogram('millrace_commit_seconds', '0.25', '0.5', 20),
    minutes: [5, 15, 30],
    summary: 'one commit in a hundred of a takes 497.5ms',
  },
  {
    alert: 'MillraceSlowAnswers',
    series: histogram('millrace_receive_seconds', '5', '10', 20),
    minutes: [4, 15, 30],
    summary: 'one answer in a hundred of a takes 9.95s; the sender waits 15 s',
  },
  {
    alert: 'MillraceEventLoopLag',
    series: { nodejs_eventloop_lag_p99_seconds: '0.1x5 0.75x20 0.1x100' },
    minutes: [14, 17, 27],
    summary: 'the event loop of a lags by 750ms',
  },
  {
    alert: 'MillraceManifestPutBack',
    series: { 'millrace_archive_heads_lost{sink="hubs"}': '0x5 1x10 0x100' },
    minutes: [5, 7, 17],
    labels: { sink: 'hubs' },
    summary: 'the manifest of hubs at a is an older one, or was changed',
  },
  {
    alert: 'MillraceReceiptsBehind',
    series: { millrace_receipts_behind: '0x5 1x10 0x100' },
    minutes: [9, 12, 17],
    summary: 'a cannot write its log of receipts; deliveries are answered without them',
  },
  {
    alert: 'MillraceConfigNotInForce',
    series: { millrace_config_in_force: '1x5 0x10 1x100' },
    minutes: [9, 12, 17],
    summary: 'a runs on the config before the last change',
  },
];

/** A series with the labels that Prometheus adds. */
function scraped(series: string): string {
  const [, name, own] = /^([a-z0-9_]+)(?:\{(.*)\})?$/.exec(series) ?? [];
  return `${name}{job="millrace", instance="a"${own === undefined ? '' : `, ${own}`}}`;
}

test('each alert has a case, with series that have the labels of the catalogue', () => {
  expect(CASES.map(({ alert }) => alert)).toEqual(rules.map(({ alert }) => alert));
  const labels = new Map(METRICS.map(({ name, labels: own }) => [name, own]));
  for (const { alert, series } of CASES)
    for (const text of Object.keys(series)) {
      const name = text.replace(/\{.*/, '').replace(/_bucket$/, '');
      if (!name.startsWith('millrace_')) continue;
      const own = Array.from(text.matchAll(/([a-z]+)="/g), ([, label]) => label).filter(
        (label) => label !== 'le',
      );
      expect(new Set(own), alert).toEqual(new Set(labels.get(name) ?? ['not a metric']));
    }
});

const lack = lacksProgram('promtool');

test.skipIf(lack !== null)(
  `Prometheus takes the rules, and each alert fires and ends when it should${skipped(lack)}`,
  async () => {
    const folder = await temporaryFolder();
    const alerts = join(ROOT, 'deploy/helm/millrace/alerts.yml');
    const tests = CASES.map(({ alert, series, minutes: times, labels = {}, summary }) => {
      const rule = rules.find((one) => one.alert === alert);
      // What `sum by (instance)` and the like leave.
      const left = /\bby \(([^)]*)\)/.exec(rule?.expr ?? '')?.[1]?.split(/,\s*/) ?? ['job', 'instance'];
      const all = { job: 'millrace', instance: 'a' };
      const added = Object.entries(all).filter(([name]) => left.includes(name) && alert !== 'MillraceSilent');
      const fired = {
        exp_labels: { severity: rule?.labels.severity, ...Object.fromEntries(added), ...labels },
        exp_annotations: { summary, runbook_url: rule?.annotations.runbook_url },
      };
      return {
        interval: '1m',
        name: alert,
        input_series: Object.entries(series).map(([text, values]) => ({ series: scraped(text), values })),
        alert_rule_test: times.map((minutes, index) => ({
          eval_time: `${minutes}m`,
          alertname: alert,
          exp_alerts: index === 1 ? [fired] : [],
        })),
      };
    });
    const absent = {
      interval: '1m',
      name: 'no receiver to ask',
      input_series: [],
      alert_rule_test: [
        {
          eval_time: '5m',
          alertname: 'MillraceDown',
          exp_alerts: [
            {
              exp_labels: { severity: 'critical', job: 'millrace' },
              exp_annotations: {
                summary: 'every receiver does not answer',
                runbook_url: 'docs/run-book.md#millracedown',
              },
            },
          ],
        },
      ],
    };
    const file = join(folder, 'alerts.test.yml');
    writeFileSync(
      file,
      stringify({ rule_files: [alerts], evaluation_interval: '1m', tests: [...tests, absent] }),
    );
    for (const args of [
      ['check', 'rules', alerts],
      ['test', 'rules', file],
      ['check', 'config', '--syntax-only', join(ROOT, 'deploy/prometheus/prometheus.yml')],
    ]) {
      const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' });
      expect({ args, status }, stdout + stderr).toEqual({ args, status: 0 });
    }
  },
);
