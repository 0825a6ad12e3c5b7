import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newDeliveryId } from '../../../src/sandbox/made-up-events.ts';
import { TEAM, USER } from '../../support/events.ts';
import { Place } from '../../support/place.ts';
import { skipped } from '../../support/requirements.ts';
import { expectReadable } from './axe.ts';
import { lacksBrowser, launchBrowser, openPage, says } from './browser.ts';

const LACK = lacksBrowser();

function event(type: string, data: object): { id: string; body: Buffer } {
  const made = { event_type: type, team_id: TEAM, user_id: USER, client_user_id: 'made-up', data };
  return { id: newDeliveryId(), body: Buffer.from(JSON.stringify(made)) };
}

describe.skipIf(LACK !== null)(`fields in the console${skipped(LACK)}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('types and their fields are shown, by keyboard and on a phone; axe finds nothing', async () => {
    const receiver = await (await Place.make()).start();
    const data = { glucose: 5.5, list: [1] };
    await receiver.send([
      event('made.up.measured', data),
      event('<b>made.up</b>.created', data),
      event('made.up.measured', { hrv: 1 }),
    ]);
    for (const [width, colorScheme] of [
      [1200, 'light'],
      [320, 'dark'],
    ] as const) {
      const { page, complaints } = await openPage(browser, receiver, {
        viewport: { width, height: 800 },
        colorScheme,
      });
      await says(page, '#state', 'Ready');
      await page.locator('#tab-schema').click();
      await says(page, '#schema-note', '2 event types');
      const type = page.getByRole('button', { name: 'made.up.measured' });
      await type.focus();
      await page.keyboard.press('Enter');
      await says(page, '#schema-fields caption', /made\.up\.measured/);
      await says(page, '#schema-fields tbody', /\/data\/glucose ?decimal.*\/data\/hrv ?new/s);
      expect(await type.getAttribute('aria-expanded')).toBe('true');
      await expectReadable(page, `schema ${width}`);
      await page.keyboard.press('Enter');
      expect(await page.locator('#schema-fields').isHidden()).toBe(true);
      expect(complaints).toEqual([]);
    }
  });
});
