import axeCore from 'axe-core';
import type { Page } from 'playwright-core';
import { expect } from 'vitest';
import { faintTexts } from './contrast.ts';

interface Axe {
  run(): Promise<{ violations: { id: string; nodes: { html: string; failureSummary?: string }[] }[] }>;
}
declare const axe: Axe;
declare const document: { readonly documentElement: { readonly scrollWidth: number } };
declare const innerWidth: number;

/** What axe finds on the page as it is. */
export async function findings(page: Page): Promise<string[]> {
  await page.evaluate(axeCore.source);
  const { violations } = await page.evaluate(() => axe.run());
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary ?? ''}`);
}

/** Desktop; 200 % of it, in the dark; a phone. */
export const SIZES = [
  [1280, 'light'],
  [640, 'dark'],
  [320, 'light'],
] as const;

/** Nothing stands out at the side, every text can be read, and axe finds nothing. */
export async function expectReadable(page: Page, name: string): Promise<void> {
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  const [faint, found] = [await faintTexts(page), await findings(page)];
  expect({ name, overflow, faint, found }).toEqual({ name, overflow: 0, faint: [], found: [] });
}
