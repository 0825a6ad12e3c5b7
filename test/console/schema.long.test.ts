import axeCore from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { newDeliveryId } from '../../src/sandbox/made-up-events.ts';
import { TEAM, USER } from '../support/events.ts';
import { temporaryFolder } from '../support/folders.ts';
import { writeConfig } from '../support/millrace.ts';
import { Receiver } from '../support/receiver.ts';
import { skipped } from '../support/requirements.ts';
import { postSigned } from '../support/signed-events.ts';
import { lacksBrowser, launchBrowser, openPage, says } from './browser.ts';
import { faintTexts } from './contrast.ts';

const LACK = lacksBrowser();

interface Axe {
  run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }>;
}
declare const axe: Axe;
declare const document: { readonly documentElement: { readonly scrollWidth: number } };
declare const innerWidth: number;

async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axeCore.source);
  const { violations } = await page.evaluate(() => axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

describe.skipIf(LACK !== null)(`fields in the console${skipped(LACK)}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterAll(() => browser.close());

  test('types and their fields are shown, by keyboard and on a phone; axe finds nothing', async () => {
    const receiver = await Receiver.start(writeConfig(await temporaryFolder()));
    for (const type of ['made.up.measured', '<b>made.up</b>.created']) {
      const event = {
        event_type: type,
        team_id: TEAM,
        user_id: USER,
        client_user_id: 'made-up',
        data: { glucose: 5.5, list: [1] },
      };
      const { status } = await postSigned(receiver.url, Buffer.from(JSON.stringify(event)), {
        id: newDeliveryId(),
      });
      expect(status).toBe(202);
    }
    const changed = {
      event_type: 'made.up.measured',
      team_id: TEAM,
      user_id: USER,
      client_user_id: 'made-up',
      data: { hrv: 1 },
    };
    await postSigned(receiver.url, Buffer.from(JSON.stringify(changed)), { id: newDeliveryId() });
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
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      expect([width, overflow, await faintTexts(page), await findings(page)]).toEqual([width, 0, [], []]);
      if (process.env['MILLRACE_TEST_PICTURES'] !== undefined)
        await page.screenshot({
          path: `${process.env['MILLRACE_TEST_PICTURES']}/schema-${width}.png`,
          fullPage: true,
        });
      await page.keyboard.press('Enter');
      expect(await page.locator('#schema-fields').isHidden()).toBe(true);
      expect(complaints).toEqual([]);
    }
  });
});
