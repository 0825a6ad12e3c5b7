import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser } from 'playwright-core';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { eventOf, userId } from '../erase/support.ts';
import { temporaryFolder } from '../support/folders.ts';
import { millrace, writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { until } from '../support/until.ts';
import { lacksBrowser, launchBrowser, openAt, openPage, says } from './browser.ts';
import { faintTexts } from './contrast.ts';

const WILFUL = fileURLToPath(new URL('../admin/wilful-sink.ts', import.meta.url));
const LACK = lacksBrowser();

/** What the tests use of the page's own world. */
interface Canvas {
  readonly width: number;
  readonly height: number;
  getContext(kind: '2d'): {
    getImageData(...area: [x: number, y: number, width: number, height: number]): { data: Uint8ClampedArray };
  };
}
declare const document: {
  readonly documentElement: { readonly scrollWidth: number };
  readonly body: { readonly style: object };
};
declare const innerWidth: number;
declare const localStorage: { readonly length: number };
declare const sessionStorage: { readonly length: number; getItem(name: string): string | null };

interface Prepared {
  readonly receiver: Receiver;
  readonly config: string;
  readonly archive: string;
  /** Holds what the sink does; see wilful-sink.ts. */
  readonly folder: string;
}

async function start(files: readonly string[], changes: Record<string, object> = {}): Promise<Prepared> {
  const folder = await temporaryFolder();
  const [own, archive] = [join(folder, 'own'), join(folder, 'archive')];
  mkdirSync(own);
  for (const file of files) writeFileSync(join(own, file), '');
  const config = writeConfig(folder, {
    sinks: {
      archive: { type: 'files', path: archive },
      own: { type: WILFUL, folder: own },
    },
    routes: [
      { match: ['labtest.'], to: ['own', 'archive'] },
      { match: ['*'], to: ['archive'] },
    ],
    ...changes,
  });
  return { receiver: await Receiver.start(config), config, archive, folder: own };
}

async function send(receiver: Receiver, n: number, type = 'daily.data.meal.created'): Promise<string> {
  const { id, body } = madeUpEvent(n, type);
  expect((await postSigned(receiver.url, body, { id })).status).toBe(202);
  return id;
}

describe.skipIf(LACK !== null)(`the console in a browser${skipped(LACK)}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('what happens is seen as it happens', async () => {
    const { receiver } = await start(['open']);
    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    await says(page, '#tile-total', '0');
    const ids = [];
    for (let n = 0; n < 5; n += 1) ids.push(await send(receiver, n));
    await says(page, '#tile-total', '5');
    await says(page, '#routes tbody tr:nth-child(2) td[data-label=Events]', '5');
    await says(page, '#sinks tbody tr:first-child td[data-label=State]', 'Running');
    const shown = page.locator('#events-table tbody .link');
    await until('the events', async () => (await shown.count()) === 5);
    // Newest first.
    expect(await shown.first().getAttribute('title')).toBe(ids[4]);
    // The chart has a line: more than one colour is on it.
    const colors = await page.locator('#chart-rate canvas').evaluate((element) => {
      const canvas = element as unknown as Canvas;
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      return new Set(new Uint32Array(data.buffer)).size;
    });
    expect(colors).toBeGreaterThan(3);
    expect(await page.locator('#chart-rate canvas').getAttribute('aria-label')).toMatch(/accepted/);
    await page.getByLabel('Filter by type').fill('nothing like it');
    await until('the filter', async () => (await shown.count()) === 0);
    expect(complaints).toEqual([]);
  });

  test('who was refused is counted, by reason, and a sink that lost its folder is shown in trouble', async () => {
    const { receiver, archive } = await start(['open']);
    await send(receiver, 1);
    const unsigned = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' } as const;
    for (let n = 0; n < 2; n += 1) await (await request(receiver.url, unsigned)).body.dump();
    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#tile-refused', '2');
    await says(page, '#tile-refused-note', /^2\ssignature_missing; since /);
    await says(page, '#tile-connections-note', /^of [\d,]+$/);
    const row = '#sinks tbody tr:first-child';
    await says(page, `${row} td[data-label=State]`, 'Running');
    await receiver.drained(); // What is still written would be in the way, or be a file that is lost.
    rmSync(archive, { recursive: true });
    await says(page, `${row} td[data-label=State]`, 'Running, in trouble');
    await says(page, `${row} td[data-label="Last error"]`, /^folder_replaced since .*: /m);
    expect(complaints).toEqual([]);
  });

  test('events of a user that is erased go from the page', async () => {
    const { receiver, config } = await start(['open']);
    const { page, complaints } = await openPage(browser, receiver);
    for (const user of [1, 2]) {
      const event = eventOf(user, 1);
      expect((await postSigned(receiver.url, event.body, { id: event.id })).status).toBe(202);
    }
    const shown = page.locator('#events-table tbody .link');
    await until('both events', async () => (await shown.count()) === 2);
    expect((await millrace(['erase', userId(1), '--now', '--config', config])).code).toBe(0);
    await until('one event', async () => (await shown.count()) === 1);
    expect(await shown.first().getAttribute('title')).toBe('msg_2_1');
    expect(complaints).toEqual([]);
  });

  test('what an event says of itself is text, never markup', async () => {
    const { receiver } = await start(['open']);
    const { page, complaints } = await openPage(browser, receiver);
    const type = 'daily.<img src=x onerror="document.title=1"><b>made up</b>';
    await send(receiver, 1, type);
    await says(page, '#events-table tbody .type', type);
    expect(await page.locator('#events-table img, #events-table b').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('quarantined events are looked at, and dropped only when that is confirmed', async () => {
    const { receiver } = await start(['open']);
    const invalid = JSON.stringify({ event_type: 'daily.data.meal.created', data: { kcal: 77 } });
    for (const id of ['msg_one', 'msg_two']) await postSigned(receiver.url, Buffer.from(invalid), { id });
    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#tab-quarantine .count', '2');
    await page.locator('#tab-events').focus();
    await page.keyboard.press('ArrowRight');
    const rows = page.locator('#quarantine tbody tr');
    await until('both rows', async () => (await rows.count()) === 2);
    await page.getByRole('button', { name: 'Details of msg_one' }).click();
    await says(page, '#details-facts', /msg_one.*team_missing/);
    // Bodies are shown only where console.payloads says so.
    expect(await page.getByRole('button', { name: 'Show the body' }).isVisible()).toBe(false);
    await page.keyboard.press('Escape');

    await page.getByRole('button', { name: 'Retry all' }).click();
    await says(page, '#confirm-title', 'Retry 2 events?');
    await says(page, '#confirm-text', /^2 daily\.data\.meal\.created\. /);
    await page.locator('#confirm-yes').click();
    await says(page, '#toast', /^0 events retried; 2 stayed/);
    await page.getByRole('button', { name: 'Drop event msg_one' }).click();
    await page.keyboard.press('Escape');
    expect((await receiver.status()).journal.quarantined).toBe(2);
    await page.getByRole('button', { name: 'Drop event msg_one' }).click();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await until('the row to go', async () => (await rows.count()) === 1);
    expect((await receiver.status()).journal.quarantined).toBe(1);
    expect(complaints).toEqual([]);
  });

  test('dead letters are retried for a sink that has been repaired', async () => {
    const { receiver, folder } = await start(['open']);
    for (let n = 0; n < 3; n += 1) await send(receiver, n, 'labtest.order.updated');
    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#tile-dead', '3');
    await page.locator('.tile a[data-tab=dead-letters]').click();
    await says(page, '#dead-letters tbody tr:first-child .why', /made_up_code made-up reason/);
    writeFileSync(join(folder, 'mild'), '');
    await page.locator('#dead-letters').getByRole('button', { name: 'Retry all' }).click();
    await says(page, '#confirm-text', /^3 labtest\.order\.updated\. /);
    await page.locator('#confirm-yes').click();
    await says(page, '#toast', '3 dead letters retried.');
    await says(page, '#tile-dead', '0');
    await says(page, '#dead-letters tbody', /^No dead letters/);
    expect((await receiver.drained()).journal.deadLetters).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('bodies are shown where the config allows it, as they came', async () => {
    const { receiver } = await start(['open'], { console: { payloads: true } });
    const body = Buffer.from(
      JSON.stringify({ ...(JSON.parse(madeUpEvent(1).body.toString()) as object), n: 1 }).replace(
        '"n":1',
        '"n": 1E400',
      ),
    );
    expect((await postSigned(receiver.url, body, { id: 'msg_exact' })).status).toBe(202);
    const { page } = await openPage(browser, receiver);
    await page.getByRole('button', { name: 'Details of msg_exact' }).click();
    await page.getByRole('button', { name: 'Show the body' }).click();
    await says(page, '#details-body', body.toString());
  });

  test('a link of `millrace console` lets one tab in, once; nothing of it stays in sight', async () => {
    const { receiver, config } = await start(['open']);
    const { code, stdout } = await millrace(['console', '--config', config]);
    expect(code).toBe(0);
    const link = stdout.trim();
    const page = await openAt(browser, link);
    await says(page, '#state', 'Ready');
    expect(page.url()).toBe(`${receiver.adminUrl}/console/`);
    // The tab is let in, not the browser.
    await page.reload();
    await says(page, '#state', 'Ready');
    expect(await page.context().cookies()).toEqual([]);
    expect(await page.evaluate(() => localStorage.length)).toBe(0);

    const other = await openAt(browser, link);
    await says(other, '#login-error', 'That link was already used, or has expired.');
    await says(other, '#state', 'Signed out');
    expect(await other.locator('#console').isVisible()).toBe(false);
    // Pasted into the tab that is there, the next one works.
    const next = (await millrace(['console', '--config', config])).stdout.trim();
    await other.goto(next);
    await says(other, '#state', 'Ready');

    const token = await page.evaluate(() => sessionStorage.getItem('millrace.token'));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await until('the form', () => page.getByLabel('Token').isVisible());
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    // It is over for who has kept a copy, too.
    const headers = { authorization: `Bearer ${token}` };
    const { statusCode, body } = await request(`${receiver.adminUrl}/api/console`, { headers });
    await body.dump();
    expect(statusCode).toBe(401);
  });

  test('a token can be typed in; it is kept in the tab and in no cookie, and forgotten on signing out', async () => {
    const token = 'made-up-token-of-the-config';
    const { receiver } = await start(['open'], { admin: { token } });
    const page = await openAt(browser, `${receiver.adminUrl}/console`);
    await page.getByLabel('Token').fill('wrong');
    await page.keyboard.press('Enter');
    await says(page, '#login-error', 'That token was not accepted.');
    expect(await page.locator('#console').isVisible()).toBe(false);
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await says(page, '#state', 'Ready');
    await page.reload();
    await says(page, '#state', 'Ready');
    expect(await page.context().cookies()).toEqual([]);
    expect(await page.evaluate(() => localStorage.length)).toBe(0);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await until('the form', () => page.getByLabel('Token').isVisible());
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
  });

  test('a receiver that is gone, and one whose config is wrong, are told of', async () => {
    const { receiver, config } = await start(['open']);
    const { page } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    writeFileSync(config, 'sinks: {');
    receiver.signal('SIGHUP');
    await says(page, '#banners', /^The changed config could not be used/);
    await receiver.kill('SIGTERM');
    await says(page, '#state', 'No answer');
    await says(page, '#banners', /^The receiver does not answer since/);
    expect(await page.title()).toBe('No answer – millrace');
  });

  test('the list stands still while it is paused, by key or button', async () => {
    const { receiver } = await start(['open']);
    const { page } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    await page.keyboard.press('p');
    await says(page, '#pause', 'Resume');
    await send(receiver, 1);
    // Whoever else asks sees it, and the paused page does not.
    const { page: other } = await openPage(browser, receiver);
    await says(other, '#tile-total', '1');
    expect(await page.locator('#tile-total').textContent()).toBe('0');
    await page.getByRole('button', { name: 'Resume' }).click();
    await says(page, '#tile-total', '1');
  });

  test('work in progress is shown with how far it is, and what became of it', async () => {
    const { receiver } = await start(['open']);
    const { page } = await openPage(browser, receiver);
    await says(page, '#activities', 'No erasure, replay or backfill is running.');
    const note = async (news: object): Promise<void> => {
      const activity = {
        kind: 'replay',
        id: 'made-up',
        title: 'last-month to archive',
        state: 'running',
        unit: 'events',
        done: 1200,
        total: 4800,
        startedAt: Date.now(),
        updatedAt: Date.now(),
        detail: null,
        ...news,
      };
      const headers = { ...receiver.authorization, 'content-type': 'application/json' };
      const body = JSON.stringify(activity);
      const { statusCode } = await request(`${receiver.adminUrl}/api/activities`, {
        method: 'POST',
        headers,
        body,
      });
      expect(statusCode).toBe(200);
    };
    await note({});
    await says(page, '#activities li', /^Replaylast-month to archiverunning1,200 of 4,800 events/);
    expect(await page.locator('#activities progress').getAttribute('value')).toBe('0.25');
    await note({ state: 'failed', done: 2000, detail: 'made-up trouble' });
    await says(page, '#activities li', /failed2,000 of 4,800 events · .* · made-up trouble$/);
  });

  const SIZES = [
    ['a desktop', 1280, 'light'],
    ['a desktop', 1280, 'dark'],
    ['a tablet', 800, 'light'],
    ['a phone', 390, 'dark'],
    ['a small phone', 320, 'light'],
  ] as const;

  test('it fits desktops and phones, in light and dark, and every text can be read', async () => {
    const { receiver } = await start([]);
    await send(
      receiver,
      1,
      'labtest.order.with_a_rather_long_name_that_has_no_end_and_no_space_to_break_at.updated',
    );
    const invalid = Buffer.from(JSON.stringify({ event_type: 'daily.data.meal.created' }));
    await postSigned(receiver.url, invalid, { id: `msg_${'long'.repeat(40)}` });
    for (const [name, width, colorScheme] of SIZES) {
      const { page, complaints } = await openPage(browser, receiver, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      await says(page, '#sinks tbody tr:nth-child(2) td[data-label=State]', 'Opening');
      for (const tab of ['events', 'quarantine', 'dead-letters']) {
        await page.locator(`#tab-${tab}`).click();
        await until('a row', async () => (await page.locator(`#${tab} tbody tr`).count()) > 0);
        const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
        expect([name, colorScheme, tab, overflow]).toEqual([name, colorScheme, tab, 0]);
        expect([name, colorScheme, tab, await faintTexts(page)]).toEqual([name, colorScheme, tab, []]);
      }
      expect(complaints).toEqual([]);
    }
  });

  test('it fits with letters of any width, at the widths where its layout changes', async () => {
    const { receiver } = await start([]);
    await send(receiver, 1, 'labtest.order.updated');
    const invalid = Buffer.from(JSON.stringify({ event_type: 'daily.data.meal.created' }));
    await postSigned(receiver.url, invalid, { id: 'msg_invalid' });
    const { page } = await openPage(browser, receiver);
    await says(page, '#sinks tbody tr:nth-child(2) td[data-label=State]', 'Opening');
    // Which fonts there are differs from machine to machine; generic families and other spacing are everywhere.
    for (const style of [
      { letterSpacing: '0.08em' },
      { letterSpacing: '0', fontFamily: 'monospace' },
      { letterSpacing: '-0.04em', fontFamily: 'serif' },
    ]) {
      await page.evaluate((change) => void Object.assign(document.body.style, change), style);
      for (const tab of ['events', 'quarantine', 'dead-letters']) {
        await page.locator(`#tab-${tab}`).click();
        await until('a row', async () => (await page.locator(`#${tab} tbody tr`).count()) > 0);
        for (const width of [1280, 1081, 1080, 961, 960, 800, 721, 720, 320]) {
          await page.setViewportSize({ width, height: 800 });
          const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
          expect({ style, width, tab, overflow }).toEqual({ style, width, tab, overflow: 0 });
        }
      }
    }
  });
});
