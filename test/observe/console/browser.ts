import {
  chromium,
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  type Page,
} from 'playwright-core';
import { onTestFinished } from 'vitest';

import { lacksProgram, type Lack } from '../../support/requirements.ts';
import type { Serving } from '../../support/serving.ts';
import { messageOf } from '../../../src/core/errors.ts';
import { until } from '../../support/until.ts';

const CHROMIUM = '/usr/bin/chromium';

export function lacksBrowser(): Lack {
  return lacksProgram('chromium');
}

export function launchBrowser(): Promise<Browser> {
  // Chromium's own sandbox does not work for root, as which containers often run tests.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath: CHROMIUM, args });
}

export interface OpenPage {
  readonly page: Page;
  /** Errors and warnings on the page's console so far: breaches of its policy are among them. */
  readonly complaints: string[];
}

/** Its own limit of 30 seconds is too short for a busy machine. */
async function newPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  page.setDefaultTimeout(180_000);
  return page;
}

/** A page in a profile of its own, let in by a link, closed when the test ends. */
export async function openPage(
  browser: Browser,
  receiver: Pick<Serving, 'adminUrl' | 'call'>,
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  onTestFinished(() => context.close());
  const page = await newPage(context);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  const { code } = (await receiver.call('/api/console/links', {})).answer;
  await page.goto(`${receiver.adminUrl}/console/#code=${code}`);
  return { page, complaints };
}

/** A page at an address, in a profile of its own, closed when the test ends. */
export async function openAt(browser: Browser, url: string): Promise<Page> {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const page = await newPage(context);
  await page.goto(url);
  return page;
}

/** Waits until the element says what it should. */
export async function says(page: Page, selector: string, wanted: string | RegExp): Promise<void> {
  let text = '';
  const asWanted = until(`${selector} to say ${wanted}`, async () => {
    text = (await page.locator(selector).first().textContent())?.trim() ?? '';
    return typeof wanted === 'string' ? text === wanted : wanted.test(text);
  });
  await asWanted.catch((error: unknown) => {
    throw new Error(`${messageOf(error)}; it says: ${text}`, { cause: error });
  });
}
