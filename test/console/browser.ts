import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { onTestFinished } from 'vitest';
import { lacksProgram, type Lack } from '../support/requirements.ts';
import { until } from '../support/until.ts';

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

/** A page in a profile of its own, closed when the test ends. */
export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<OpenPage> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(`${url}/console`);
  return { page, complaints };
}

/** Waits until the element says what it should. */
export async function says(page: Page, selector: string, wanted: string | RegExp): Promise<void> {
  await until(`${selector} to say ${wanted}`, async () => {
    const text = (await page.locator(selector).first().textContent())?.trim() ?? '';
    return typeof wanted === 'string' ? text === wanted : wanted.test(text);
  });
}
