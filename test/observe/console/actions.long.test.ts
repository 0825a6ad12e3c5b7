import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Place } from '../../support/place.ts';
import { skipped } from '../../support/requirements.ts';
import { expectReadable, SIZES } from './axe.ts';
import { lacksBrowser, launchBrowser, openPage, says } from './browser.ts';

const LACK = lacksBrowser();

describe.skipIf(LACK !== null)(`replays and erasures in the console${skipped(LACK)}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('on a phone what stands in the place of rows, and the name of a file, have the width they need', async () => {
    const place = await Place.make();
    const receiver = await place.startProcess();
    await receiver.send(1);
    await receiver.drained();
    await place.ok('flush');
    const { page } = await openPage(browser, receiver, { viewport: { width: 380, height: 800 } });
    const share = async (selector: string): Promise<number> => {
      const { width = 0 } = (await page.locator(selector).boundingBox()) ?? {};
      return width / ((await page.locator('main').boundingBox())?.width ?? 0);
    };
    for (const [tab, selector, least] of [
      ['replay', '#replay .empty td', 0.8],
      ['erasure', '#erasure .empty td', 0.8],
      ['files', '#files td[data-label=File]', 0.5],
    ] as const) {
      await page.locator(`#tab-${tab}`).click();
      await page.locator(selector).waitFor();
      expect([tab, (await share(selector)) > least]).toEqual([tab, true]);
    }
  });

  test('both are asked for by keyboard, confirmed, and seen to the end; axe finds nothing, on any size', async () => {
    const place = await Place.make((folder) => ({
      sinks: {
        archive: { type: 'files', path: `${folder}/archive` },
        second: { type: 'files', path: `${folder}/second` },
      },
      routes: [{ match: '*', to: ['archive'] }],
    }));
    const receiver = await place.startProcess();
    await receiver.send(3, 1, 'daily.data.meal.created');
    await receiver.drained();

    const { page, complaints } = await openPage(browser, receiver);
    await says(page, '#state', 'Ready');
    await page.locator('#tab-events').focus();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    await says(page, '#replay tbody', /^No replay since the start/);
    await page.getByRole('combobox', { name: 'To', exact: true }).selectOption('second');
    await page.getByLabel('Types begin with').fill('daily.');
    await page.keyboard.press('Enter');
    await says(page, '#replay .pill', 'counted');
    await says(page, '#replay td[data-label=What]', 'journal to second, daily.*');
    await says(page, '#replay td[data-label=Types]', '3 daily.data.meal.created');
    await page.getByRole('button', { name: /^Send/ }).press('Enter');
    await says(page, '#confirm-title', 'Send 3 events again?');
    await says(page, '#confirm-text', /3 to second\. They carry a replay id/);
    await page.keyboard.press('Escape');
    await says(page, '#replay .pill', 'counted');
    await page.getByRole('button', { name: /^Send/ }).press('Enter');
    // Closed and asked again before the browser says that it was closed: the second answer counts.
    await page.evaluate(
      `document.getElementById('confirm').close(); document.querySelector('#replay [aria-label^="Send"]').click()`,
    );
    await page.locator('#confirm[open] #confirm-yes').press('Enter');
    await says(page, '#replay .pill', 'done');
    await says(page, '#replay td[data-label=Events]', '3');
    await page.getByRole('button', { name: /^Forget/ }).press('Enter');
    await says(page, '#replay tbody', /^No replay since the start/);

    await page.locator('#tab-replay').focus();
    await page.keyboard.press('ArrowRight');
    await says(page, '#erasure tbody', 'No erasure waits.');
    await page.getByLabel('Id', { exact: true }).fill('<b>somebody</b>');
    await page.keyboard.press('Enter');
    await says(page, '#confirm-title', 'Erase user <b>somebody</b>?');
    await page.locator('#confirm-yes').press('Enter');
    await says(page, '#toast', /^Request [0-9a-f]{16} is due /);
    await says(page, '#erasure td[data-label=Whose]', 'user <b>somebody</b>');
    for (const [width, colorScheme] of SIZES) {
      const { page: other } = await openPage(browser, receiver, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      await says(other, '#state', 'Ready');
      await other.locator('#tab-replay').click();
      await says(other, '#replay tbody', /^No replay since the start/);
      await other.getByRole('button', { name: 'Count the events' }).click();
      await says(other, '#replay .pill', 'counted');
      await expectReadable(other, `replay ${width}`);
      await other.locator('#tab-erasure').click();
      await says(other, '#erasure td[data-label=State]', 'can be cancelled');
      await expectReadable(other, `erasure ${width}`);
      await other.locator('#tab-replay').click();
      await other.getByRole('button', { name: /^Forget/ }).click();
    }
    await page.getByRole('button', { name: /^Cancel/ }).press('Enter');
    await says(page, '#toast', 'Cancelled: nothing was erased.');
    await says(page, '#erasure tbody', 'No erasure waits.');
    expect(complaints).toEqual([]);
  });
});
