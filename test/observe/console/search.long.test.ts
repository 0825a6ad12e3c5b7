import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Browser } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { queryDuckdb } from '../../support/duckdb.ts';
import { millrace, writeConfig } from '../../support/millrace.ts';
import { skipped } from '../../support/requirements.ts';
import { ServeProcess } from '../../support/serve-process.ts';
import { until } from '../../support/until.ts';
import { findings, expectReadable, SIZES } from './axe.ts';
import { lacksBrowser, launchBrowser, openPage, says } from './browser.ts';
import { faintTexts } from './contrast.ts';

const LACK = lacksBrowser();

const sum = (numbers: readonly unknown[]): number =>
  numbers.reduce<number>((total, n) => total + Number(n), 0);

/** Events as a search gives them. */
function found(newest: number, count: number): { readonly id: string }[] {
  return Array.from({ length: count }, (_, n) => ({
    key: newest - n,
    id: `msg_${newest - n}`,
    received_at: '2026-01-01T00:00:00.000Z',
    event_type: 'made.up',
    bytes: 1,
    state: 'settled',
  }));
}

describe.skipIf(LACK !== null)(`events and files in the console${skipped(LACK)}`, () => {
  let browser: Browser;
  let receiver: ServeProcess;
  let config: string;
  beforeAll(async () => {
    const folder = await mkdtemp(join(tmpdir(), 'millrace-test-'));
    config = writeConfig(folder, {
      sinks: {
        archive: { type: 'files', path: join(folder, 'archive') },
        later: { type: 'files', path: join(folder, `later's "$HOME"`) },
      },
      routes: [{ match: '*', to: ['archive', 'later:a-place'] }],
    });
    receiver = new ServeProcess(config);
    [browser] = await Promise.all([launchBrowser(), receiver.listening()]);
    return async () => {
      await Promise.all([browser.close(), receiver.kill('SIGKILL')]);
      await rm(folder, { recursive: true });
    };
  });

  test('an event is found by keyboard, and its timeline is shown; axe finds nothing, on any size', async () => {
    await receiver.send(Array.from({ length: 60 }, (_, n) => ({ ...madeUpEvent(n), id: `msg_${n}` })));
    await receiver.drained();
    const invalid = Buffer.from(JSON.stringify({ event_type: '<b>made up</b>' }));
    await receiver.send([{ id: 'msg_invalid', body: invalid }]);

    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    expect(await findings(page)).toEqual([]);
    await page.locator('#tab-events').focus();
    for (const _ of ['quarantine', 'dead-letters', 'search']) await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Tab');
    await page.getByLabel('Delivery id').focus();
    await page.keyboard.type('msg_7');
    await page.keyboard.press('Enter');
    await says(page, '#search-note', '1 event');
    await page.getByRole('button', { name: 'Details of msg_7' }).focus();
    await page.keyboard.press('Enter');
    await says(page, '#details-timeline li:nth-child(1)', /^Received .* from webhooks$/);
    await says(page, '#details-timeline li:nth-child(2)', /^Journaled .* as number \d+, on disk$/);
    await says(page, '#details-timeline li:nth-child(3)', /^archive .*\(\+.*\) delivered$/);
    await says(page, '#details-timeline li:nth-child(4)', /^later:a-place .* delivered$/);
    expect(await findings(page)).toEqual([]);
    await page.keyboard.press('Escape');

    await page.getByLabel('Delivery id').fill('');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await says(page, '#search-note', '50 events and more');
    await page.getByRole('button', { name: 'Show more' }).click();
    await says(page, '#search-note', '60 events');
    expect(await page.locator('#search-table tbody tr').count()).toBe(60);
    await page.getByLabel('State').selectOption('quarantined');
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await says(page, '#search-note', '1 event');
    await says(page, '#search-table tbody .type', '<b>made up</b>');
    await page.getByLabel('Type begins with').fill('nothing');
    await page.keyboard.press('Enter');
    await says(page, '#search-table tbody', 'No event is like that.');
    expect(complaints).toEqual([]);

    for (const [width, colorScheme] of [
      [640, 'dark'],
      [320, 'light'],
    ] as const) {
      const { page: other } = await openPage(browser, receiver, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      await says(other, '#state', 'Ready');
      await other.locator('#tab-search').click();
      await other.getByRole('button', { name: 'Search', exact: true }).click();
      await until('rows', async () => (await other.locator('#search-table tbody tr').count()) === 50);
      await expectReadable(other, `${width}`);
      await other.locator('#search-table .link').first().click();
      await until('its timeline', async () => (await other.locator('#details-timeline li').count()) === 4);
      expect([width, await faintTexts(other)]).toEqual([width, []]);
    }
  });
  test('what was found stays while the rest is asked for again and again, as an index that is made answers', async () => {
    const { page } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    const first = { events: found(1000, 50), searched: 60, of: 1000, next: 951 };
    const later = [
      { events: found(950, 3), searched: 60, of: 1000, next: null },
      { events: found(950, 4), searched: 80, of: 1000, next: null },
      // All is searched now, but each answer has its time: there is more.
      { events: found(950, 5), searched: 1000, of: 1000, next: 500 },
      { events: found(499, 6), searched: 1000, of: 1000, next: 300 },
      { events: [], searched: 1000, of: 1000, next: null },
    ];
    const asked: number[] = [];
    await page.route('**/api/search', async (route) => {
      const { before } = route.request().postDataJSON() as { before?: number };
      // It is asked for again until more is wanted, which may be late on a busy machine.
      await route.fulfill({ json: before === undefined ? first : later[asked.push(before) - 1] });
    });
    await page.locator('#tab-search').click();
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await says(page, '#search-note', '50 events and more, in 60 of 1,000 so far');
    await page.getByRole('button', { name: 'Show more' }).click();
    await says(page, '#search-note', '61 events');
    const rows = await page.locator('#search-table tbody .link').allTextContents();
    const wanted = [...found(1000, 50), ...found(950, 5), ...found(499, 6)];
    expect(rows).toEqual(wanted.map(({ id }) => id));
    expect(asked).toEqual([951, 951, 951, 500, 300]);
  });
  test('files of each archive are listed by keyboard, newest first; axe finds nothing, on any size', async () => {
    for (const id of ['msg_first', 'msg_second']) {
      await receiver.send([{ ...madeUpEvent(1), id }]);
      await receiver.drained();
      expect((await millrace(['flush', '--config', config])).code).toBe(0);
    }
    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    await page.locator('#tab-schema').focus();
    await page.keyboard.press('ArrowRight');
    await says(page, '#files [role=status]', /^\d files; 0 files open now\. As the manifest has them/);
    const archive = join(dirname(config), 'archive');
    const manifest = readFileSync(join(archive, '_manifest.jsonl'), 'utf8').trimEnd().split('\n');
    const listed = manifest.map((line) => (JSON.parse(line) as { file: string }).file).toReversed();
    expect(await page.locator('#files tbody code').allTextContents()).toEqual(listed);
    await says(page, '#files tbody td[data-label=Records]', '1');
    await says(page, '#files tbody td[data-label=State]', 'closed');
    await page.getByLabel('Written by sink').selectOption('later');
    await says(page, '#files tbody td[data-label=Records]', '1');

    // What a shell makes of the command, DuckDB can run.
    const recordsInAnswer = async (): Promise<number> => {
      const command = (await page.locator('#files .toolbar code').textContent()) ?? '';
      const sql = execFileSync('sh', ['-c', `duckdb() { printf %s "$2"; }; ${command}`], {
        encoding: 'utf8',
      });
      return sum((await queryDuckdb(sql)).map(([, records]) => records));
    };
    const shown = await page.locator('#files tbody td[data-label=Records]').allTextContents();
    expect(await recordsInAnswer()).toBe(sum(shown));
    await page.locator('#files tbody .link').first().press('Enter');
    expect(await recordsInAnswer()).toBe(1);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy' }).press('Enter');
    await says(page, '#toast', 'The command was copied.');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(
      await page.locator('#files .toolbar code').textContent(),
    );
    for (const [width, colorScheme] of SIZES) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      await expectReadable(page, `files ${width}`);
    }

    // More than one page holds, the newer of which were made of all the older.
    const { file, ...rest } = JSON.parse(manifest[0] ?? '') as { file: string };
    const names = Array.from({ length: 150 }, (_, n) => `old/${n}.ndjson.gz`);
    const replaces = names.slice(0, 120).map((name) => ({ file: name, records: 1, bytes: 1, sha256: '' }));
    const lines = [
      ...[file, ...names].map((name) => ({ file: name, ...rest })),
      { file: '<b>new</b>.ndjson.gz', ...rest, replaces },
    ];
    await writeFile(
      join(archive, '_manifest.jsonl'),
      lines.map((one) => `${JSON.stringify(one)}\n`).join(''),
    );
    await page.getByLabel('Written by sink').selectOption('archive');
    await says(page, '#files tbody code', '<b>new</b>.ndjson.gz');
    await says(page, '#files [role=status]', /^31 files and older ones/);
    await page.getByRole('button', { name: 'Show older' }).press('Enter');
    await says(page, '#files [role=status]', /^32 files;/);
    await says(page, '#files tbody tr:last-child code', file);
    expect(complaints).toEqual([]);

    const path = '/api/console/files?sink=nothing';
    expect((await fetch(receiver.adminUrl + path)).status).toBe(401);
    expect((await receiver.ask(path)).status).toBe(400);
  });
});
