import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { ReceiverProcess } from '../support/receiver-process.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { findings, fits } from './axe.ts';
import { lacksBrowser, launchBrowser, openPage, says } from './browser.ts';
import { faintTexts } from './contrast.ts';

vi.setConfig({ testTimeout: 120_000 });
const LACK = lacksBrowser();

describe.skipIf(LACK !== null)(`searching in the console${skipped(LACK)}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('an event is found by keyboard, and its way is told; axe finds nothing, on any size', async () => {
    const folder = await temporaryFolder();
    const config = writeConfig(folder, {
      sinks: {
        archive: { type: 'files', path: join(folder, 'archive') },
        later: { type: 'files', path: join(folder, 'later') },
      },
      routes: [{ match: '*', to: ['archive', 'later:a-place'] }],
    });
    const receiver = await ReceiverProcess.start(config);
    const posts = Array.from({ length: 60 }, (_, n) =>
      postSigned(receiver.url, madeUpEvent(n).body, { id: `msg_${n}` }),
    );
    for (const { status } of await Promise.all(posts)) expect(status).toBe(202);
    await receiver.drained();
    const invalid = Buffer.from(JSON.stringify({ event_type: '<b>made up</b>' }));
    await postSigned(receiver.url, invalid, { id: 'msg_invalid' });

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
    await says(page, '#details-way li:nth-child(1)', /^Received .* from webhooks$/);
    await says(page, '#details-way li:nth-child(2)', /^Journaled .* as number \d+, on disk$/);
    await says(page, '#details-way li:nth-child(3)', /^archive .*\(\+.*\) delivered$/);
    await says(page, '#details-way li:nth-child(4)', /^later:a-place .* delivered$/);
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
      await fits(other, `${width}`);
      await other.locator('#search-table .link').first().click();
      await until('its way', async () => (await other.locator('#details-way li').count()) === 4);
      expect([width, await faintTexts(other)]).toEqual([width, []]);
    }
  });
});
