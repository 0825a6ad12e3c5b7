import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { chromium, type Page } from 'playwright-core';
import { Agent } from 'undici';
import { stringify } from 'yaml';
import { MADE_UP_TEAM, madeUpEvent } from '../../src/sandbox/made-up-events.ts';
import { postSigned } from '../support/signed-events.ts';
import { freePorts, run, serve, stop, type Places, type Ports } from './program.ts';

/** Milliseconds that a page or an answer may take. */
const PATIENCE = 60_000;
/** Which of the events that the target gets it refuses. */
const REFUSED = 40;
const STRANGER = '00000000-0000-4000-8000-000000000009';
const FORGED = `whsec_${randomBytes(24).toString('base64')}`;
const SECRET = `whsec_${randomBytes(24).toString('base64')}`;

/** The console's overview after so many seconds of events, some of them bad, in both colour schemes. */
export async function consolePictures({ main, folder, docs }: Places, seconds: number): Promise<void> {
  let posted = 0;
  const target = createServer((incoming, response) => {
    posted += 1;
    // Refused with no retry, which makes a dead letter.
    const status = posted === REFUSED ? 422 : 204;
    incoming.resume().once('end', () => response.writeHead(status).end());
  });
  await new Promise<void>((resolve) => {
    target.listen(0, '127.0.0.1', resolve);
  });
  const own = join(folder, 'console');
  const ports = await freePorts();
  prepare(own, ports, (target.address() as AddressInfo).port);
  const webhooks = `http://127.0.0.1:${ports.server}/webhooks`;
  const serving = await serve(main, own);
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
  try {
    const page = await browser.newPage({ viewport: { width: 1120, height: 1220 } });
    page.setDefaultTimeout(PATIENCE);
    const [link = ''] = /http\S+/.exec(await run(main, own, ['console'])) ?? [];
    await page.goto(link);
    await page.locator('#tile-rate').waitFor();
    // Events continue while the pictures are taken.
    const sending = events(webhooks, seconds + 10);
    await Promise.race([sending, sleep(seconds * 1000)]);
    for (const colorScheme of ['light', 'dark'] as const) await pictures(page, colorScheme, docs);
    await sending;
  } finally {
    await browser.close();
    await stop(serving);
    await SENDER.close();
    target.close();
  }
}

/** As few connections as a sender keeps. */
const SENDER = new Agent({ connections: 8, headersTimeout: PATIENCE, bodyTimeout: PATIENCE });

/** Writes a config. @param port of the target of one sink */
function prepare(folder: string, { server, admin }: Ports, port: number): void {
  mkdirSync(join(folder, 'config'), { recursive: true });
  const config = {
    server: { host: '127.0.0.1', port: server },
    admin: { port: admin },
    signing: { secrets: [SECRET] },
    envelope: { teams: [MADE_UP_TEAM] },
    sinks: {
      archive: { type: 'files', path: './data/archive' },
      labs: {
        type: 'http',
        url: `http://127.0.0.1:${port}/labs`,
        sign: 'original',
        privateNetworks: ['127.0.0.1'],
      },
    },
    routes: [
      { match: ['labtest.', 'lab_report.'], to: ['labs', 'archive'] },
      { match: '*', to: ['archive'] },
    ],
  };
  writeFileSync(join(folder, 'config/millrace.yaml'), stringify(config));
}

/** More and fewer a second, in waves; now and then one of a stranger's team, or signed with another secret. */
async function events(url: string, seconds: number): Promise<void> {
  for (let second = 0, n = 0; second < seconds; second += 1) {
    const next = sleep(1000);
    const amount = Math.round(60 + 35 * Math.sin(second / 17) + 20 * Math.sin(second / 5));
    const posts = Array.from({ length: amount }, () => {
      n += 1;
      const { id, body } = madeUpEvent(n);
      const isStranger = n % 997 === 0;
      const sent = isStranger ? Buffer.from(body.toString().replace(MADE_UP_TEAM, STRANGER)) : body;
      return postSigned(url, sent, { id, secret: n % 701 === 0 ? FORGED : SECRET, dispatcher: SENDER });
    });
    await Promise.all(posts);
    await next;
  }
}

/** The overview, then what two of its tabs show. */
async function pictures(page: Page, colorScheme: 'light' | 'dark', docs: string): Promise<void> {
  await page.emulateMedia({ colorScheme });
  await page.locator('#tab-events').click();
  await page.mouse.move(0, 0);
  // The chart is drawn in the new colours with the next figures.
  await sleep(2500);
  await page.locator('html').evaluate((root) => root.scrollTo(0, 0));
  await page.screenshot({ path: join(docs, `console-${colorScheme}.png`) });
  const tabs = page.locator('section', { has: page.locator('#tab-search') });
  await page.locator('#tab-search').click();
  await page.locator('#search-type').fill('labtest.');
  await page.locator('#search button[type=submit]').click();
  await page.locator('#search-table tbody button').nth(8).waitFor();
  await page.getByText(/^50 events and more$/).waitFor();
  await tabs.evaluate((section) => {
    // Below the header, which stays at the top.
    section.style.scrollMarginTop = '72px';
    section.scrollIntoView();
  });
  const { x, y, width } = (await tabs.boundingBox()) ?? { x: 0, y: 0, width: 1120 };
  // A page of events is more than a picture needs.
  await page.screenshot({
    path: join(docs, `console-search-${colorScheme}.png`),
    clip: { x, y, width, height: 580 },
  });
}
