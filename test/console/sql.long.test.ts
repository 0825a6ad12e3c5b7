import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventOf, userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { fits, SIZES } from './axe.ts';
import { lacksBrowser, launchBrowser, openPage, says } from './browser.ts';

const LACK = lacksBrowser();

describe.skipIf(LACK !== null)(`SQL in the console${skipped(LACK)}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('an archive is queried in the browser, by keyboard; what is wrong is said in words; an erasure takes it away', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, {
      console: { payloads: true },
      erasure: { path: join(folder, 'erasure') },
      sinks: { archive: { type: 'files', path: join(folder, 'archive') } },
      routes: [{ match: '*', to: ['archive'] }],
    });
    const receiver = await ReceiverProcess.start(config);
    for (const n of [1, 2, 3]) {
      const event = eventOf(n, 1);
      expect((await postSigned(receiver.url, event.body, { id: event.id })).status).toBe(202);
    }
    await receiver.drained();

    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    const elsewhere: string[] = [];
    page.on('request', (asked) => {
      if (!asked.url().startsWith(receiver.adminUrl) && !asked.url().startsWith('blob:'))
        elsewhere.push(asked.url());
    });
    await page.getByRole('link', { name: 'SQL' }).press('Enter');
    await says(page, '#state', 'Ready');
    await page.getByRole('button', { name: 'Load' }).press('Enter');
    await says(page, '#data-note', 'events: 3 rows of 3 records, from archive.');
    const query = page.getByLabel('SQL query');
    const run = async (sql: string): Promise<void> => {
      await query.fill(sql);
      await query.press('Control+Enter');
    };
    await run("SELECT count(*) AS n, '' AS empty, NULL AS nothing, '<b>\"x\",\ny</b>' AS text FROM events; ");
    await says(page, '#query-note', /^1 row, /);
    const cells = page.locator('#result-table td');
    expect(await cells.allTextContents()).toEqual(['3', '', 'NULL', '<b>"x",\ny</b>']);
    const exact =
      "SELECT '12345678901234567890123456.123456789012'::DECIMAL(38,12) AS d, max(received_at) > '2020-01-01' AS t FROM events";
    await run(exact);
    await until(
      'exact digits',
      async () => (await cells.first().textContent()) === '12345678901234567890123456.123456789012',
    );
    expect(await cells.last().textContent()).toBe('true');
    await run('SELECT range FROM range(5000)');
    await says(page, '#query-note', /^the first 1,000 rows, /);
    for (const [wrong, words] of [
      ['SELEC 1', /syntax error/i],
      ['SELECT nothing FROM events', /Binder Error/],
      ["SELECT event->>'$.data' FROM events", /without its extensions/],
      ["SELECT * FROM read_csv('https://example.com/x.csv')", /./],
    ] as const) {
      await run(wrong);
      await says(page, '#query-error', words);
    }
    await run('SELECT 1');
    await says(page, '#query-note', /^1 row, /);
    expect(elsewhere.filter((url) => !url.startsWith('https://example.com'))).toEqual([]);
    const audit = readFileSync(join(folder, 'journal/audit.jsonl'), 'utf8');
    expect(audit.match(/"action":"query","what":"archives"/g)?.length).toBe(8);
    expect(audit).not.toContain('SELECT');

    for (const [width, colorScheme] of SIZES) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      await run('SELECT * FROM events');
      await says(page, '#query-note', /^3 rows/);
      await fits(page, `sql ${width}`);
    }

    expect((await millrace(['erase', userId(1), '--now', '--config', config])).code).toBe(0);
    await says(page, '#data-note', /^Users were erased/);
    await run('SELECT * FROM events');
    await says(page, '#query-error', 'Load a table first.');
    expect(complaints.filter((text) => !/example\.com|Buffering missing file/.test(text))).toEqual([]);
  });
});
