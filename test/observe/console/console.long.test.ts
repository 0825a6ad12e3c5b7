import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { madeUpEvent } from '../../../src/sandbox/made-up-events.ts';
import { eventOf, userId } from '../../privacy/erase/support.ts';
import { startEndpoint } from '../../sinks/http-support.ts';
import { Place } from '../../support/place.ts';
import { skipped } from '../../support/requirements.ts';
import { until } from '../../support/until.ts';
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

/** A receiver with an archive, and a sink that does what the files of its folder say; see wilful-sink.ts. */
async function start(files: readonly string[], changes: object = {}) {
  const place = await Place.make((folder) => ({
    sinks: {
      archive: { type: 'files', path: `${folder}/archive` },
      own: { type: WILFUL, folder: `${folder}/own` },
    },
    routes: [
      { match: ['labtest.'], to: ['own', 'archive'] },
      { match: ['*'], to: ['archive'] },
    ],
    ...changes,
  }));
  mkdirSync(place.at('own'));
  for (const file of files) writeFileSync(place.at('own', file), '');
  return { receiver: await place.start(), place };
}

const INVALID = Buffer.from(JSON.stringify({ event_type: 'daily.data.meal.created', data: { kcal: 77 } }));
const TABS = ['events', 'quarantine', 'dead-letters'];

/** Each of these tabs with its rows, and by how much it is too wide. */
async function* tabs(page: Page) {
  for (const tab of TABS) {
    await page.locator(`#tab-${tab}`).click();
    await until('a row', async () => (await page.locator(`#${tab} tbody tr`).count()) > 0);
    yield { tab, overflow: () => page.evaluate(() => document.documentElement.scrollWidth - innerWidth) };
  }
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
    const ids = [...(await receiver.send(5, 0, 'daily.data.meal.created')).keys()];
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
    const { receiver, place } = await start(['open']);
    await receiver.send(1);
    const unsigned = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' } as const;
    for (let n = 0; n < 2; n += 1) expect((await fetch(receiver.url, unsigned)).status).toBe(401);
    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#tile-refused', '2');
    await says(page, '#tile-refused-note', /^2\ssignature_missing; since /);
    await says(page, '#tile-connections-note', /^of [\d,]+$/);
    const row = '#sinks tbody tr:first-child';
    await says(page, `${row} td[data-label=State]`, 'Running');
    await receiver.drained(); // What is still written would be in the way, or be a file that is lost.
    rmSync(place.at('archive'), { recursive: true });
    await says(page, `${row} td[data-label=State]`, 'Running, in trouble');
    await says(page, `${row} td[data-label="Last error"]`, /^folder_replaced since .*: /m);
    expect(complaints).toEqual([]);
  });

  test('events of a user that is erased go from the page', async () => {
    const { receiver, place } = await start(['open']);
    const { page, complaints } = await openPage(browser, receiver);
    await receiver.send([eventOf(1, 1), eventOf(2, 1)]);
    const shown = page.locator('#events-table tbody .link');
    await until('both events', async () => (await shown.count()) === 2);
    await place.ok('erase', userId(1), '--now');
    await until('one event', async () => (await shown.count()) === 1);
    expect(await shown.first().getAttribute('title')).toBe('msg_2_1');
    expect(complaints).toEqual([]);
  });

  test('what an event says of itself is text, never markup', async () => {
    const { receiver } = await start(['open']);
    const { page, complaints } = await openPage(browser, receiver);
    const type = 'daily.<img src=x onerror="document.title=1"><b>made up</b>';
    await receiver.send(1, 1, type);
    await says(page, '#events-table tbody .type', type);
    expect(await page.locator('#events-table img, #events-table b').count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test('quarantined events are looked at, and dropped only when that is confirmed', async () => {
    const { receiver } = await start(['open']);
    await receiver.send(['msg_one', 'msg_two'].map((id) => ({ id, body: INVALID })));
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
    const { receiver, place } = await start(['open']);
    await receiver.send(3, 0, 'labtest.order.updated');
    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#tile-dead', '3');
    await page.locator('.tile a[data-tab=dead-letters]').click();
    await says(page, '#dead-letters tbody tr:first-child .why', /made_up_code made-up reason/);
    writeFileSync(place.at('own/mild'), '');
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
    const body = Buffer.from(madeUpEvent(1).body.toString().replace(/\}$/, ',"n": 1E400}'));
    await receiver.send([{ id: 'msg_exact', body }]);
    const { page, complaints } = await openPage(browser, receiver);
    await page.getByRole('button', { name: 'Details of msg_exact' }).click();
    await page.getByRole('button', { name: 'Show the body' }).click();
    await says(page, '#details-body', body.toString());
    expect(complaints).toEqual([]);
  });

  test('a link of `millrace console` lets one tab in, once; nothing of it stays in sight', async () => {
    const { receiver, place } = await start(['open']);
    const link = (await place.ok('console')).trim();
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
    await other.goto((await place.ok('console')).trim());
    await says(other, '#state', 'Ready');

    const token = await page.evaluate(() => sessionStorage.getItem('millrace.token'));
    await page.getByRole('button', { name: 'Sign out' }).click();
    await until('the form', () => page.getByLabel('Token').isVisible());
    expect(await page.evaluate(() => sessionStorage.length)).toBe(0);
    // It is over for who has kept a copy, too.
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(`${receiver.adminUrl}/api/console`, { headers })).status).toBe(401);
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

  test('a receiver that is gone, and one whose config is wrong, are shown', async () => {
    const { receiver, place } = await start(['open']);
    const { page } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    writeFileSync(place.config, 'sinks: {');
    receiver.signal('SIGHUP');
    await says(page, '#banners', /^The changed config could not be used/);
    await receiver.kill('SIGTERM');
    await says(page, '#state', 'No answer');
    await says(page, '#banners', /^The receiver does not answer since/);
    expect(await page.title()).toBe('No answer – millrace');
  });

  test('a sink that is paused, and a full journal, stand at the top as status says them, until they are over', async () => {
    const endpoint = await startEndpoint();
    endpoint.reply = () => 503;
    const { receiver, place } = await start(['open'], {
      journal: { maxBytes: '4MiB' },
      sinks: { far: { type: 'http', url: endpoint.url('/'), sign: 'none', privateNetworks: ['127.0.0.1'] } },
      routes: [{ match: '*', to: 'far' }],
    });
    const { page, complaints } = await openPage(browser, receiver);
    const padding = Buffer.alloc(200_000, 0x20);
    let n = 0;
    const post = async (): Promise<number> => {
      const { id, body } = madeUpEvent((n += 1));
      return (await receiver.post(Buffer.concat([body, padding]), { id })).status;
    };
    await until('a full journal', async () => (await post()) === 503);
    const [, line = ''] = /^ {2}(.+ of at most 4 MiB)$/m.exec(await place.ok('status')) ?? [];
    await says(page, '#banners', /^The journal accepts nothing: journal_full since .*Sink far is /);
    await until(line, async () => (await page.locator('#banners').textContent())?.includes(line));
    await says(page, '#banners', /answered 503/);
    await says(page, '#state', 'Not ready');
    endpoint.reply = () => 204;
    await says(page, '#state', 'Ready');
    await says(page, '#banners', '');
    expect(complaints).toEqual([]);
  });

  test('the list stands still while it is paused, by key or button', async () => {
    const { receiver } = await start(['open']);
    const { page } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    await page.keyboard.press('p');
    await says(page, '#pause', 'Resume');
    await receiver.send(1);
    // Others that ask see it, and the paused page does not.
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
      expect((await receiver.call('/api/activities', activity)).status).toBe(200);
    };
    await note({});
    await says(page, '#activities li', /^Replaylast-month to archiverunning1,200 of 4,800 events/);
    expect(await page.locator('#activities progress').getAttribute('value')).toBe('0.25');
    await note({ state: 'failed', done: 2000, detail: 'made-up trouble' });
    await says(page, '#activities li', /failed2,000 of 4,800 events · .* · made-up trouble$/);
  });

  /** Desktops, a tablet, a phone and a small one. */
  const SIZES = [
    [1280, 'light'],
    [1280, 'dark'],
    [800, 'light'],
    [390, 'dark'],
    [320, 'light'],
  ] as const;

  test('it is usable on desktops and phones, in light and dark, and every text can be read', async () => {
    const { receiver } = await start([]);
    const name = 'labtest.order.with_a_rather_long_name_that_has_no_end_and_no_space_to_break_at.updated';
    await receiver.send([madeUpEvent(1, name), { id: `msg_${'long'.repeat(40)}`, body: INVALID }]);
    for (const [width, colorScheme] of SIZES) {
      const { page, complaints } = await openPage(browser, receiver, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      await says(page, '#sinks tbody tr:nth-child(2) td[data-label=State]', 'Opening');
      for await (const { tab, overflow } of tabs(page)) {
        const found = [await overflow(), await faintTexts(page)];
        expect({ width, colorScheme, tab, found }).toEqual({ width, colorScheme, tab, found: [0, []] });
      }
      expect(complaints).toEqual([]);
    }
  });

  test('no page is wider than the screen with characters of any width, at the widths where its layout changes', async () => {
    const { receiver } = await start([]);
    await receiver.send([madeUpEvent(1, 'labtest.order.updated'), { id: 'msg_invalid', body: INVALID }]);
    const { page } = await openPage(browser, receiver);
    await says(page, '#sinks tbody tr:nth-child(2) td[data-label=State]', 'Opening');
    // Which fonts there are differs from machine to machine; generic families and other spacing are everywhere.
    for (const style of [
      { letterSpacing: '0.08em' },
      { letterSpacing: '0', fontFamily: 'monospace' },
      { letterSpacing: '-0.04em', fontFamily: 'serif' },
    ]) {
      await page.evaluate((change) => void Object.assign(document.body.style, change), style);
      for await (const { tab, overflow } of tabs(page)) {
        for (const width of [1280, 1081, 1080, 961, 960, 800, 721, 720, 320]) {
          await page.setViewportSize({ width, height: 800 });
          expect({ style, width, tab, over: await overflow() }).toEqual({ style, width, tab, over: 0 });
        }
      }
    }
  });
});
