// Opens report.html files in a real headless Chromium: nothing may run, load or fail, every attempt must show, and lists must stay quick.
//
//   npm install playwright-core && node scripts/check-html.mjs REPORT.html...      (CHROMIUM names the browser; default /usr/bin/chromium)
import { pathToFileURL } from 'node:url';
import { createRequire } from 'node:module';

// From the folder it is called in, where playwright-core is installed.
const { chromium } = createRequire(process.cwd() + '/')('playwright-core');
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
const faults = [];
const counted = async (page) => (await page.locator('#count').textContent()).replaceAll(',', '');
const check = (holds, what) => { if (!holds) faults.push(what); };

for (const file of process.argv.slice(2)) {
  for (const colorScheme of ['light', 'dark']) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 1000 }, colorScheme });
    const page = await context.newPage();
    page.on('dialog', (dialog) => { faults.push(`${file}: dialog ${dialog.message()}`); dialog.dismiss(); });
    page.on('console', (said) => check(!['error', 'warning'].includes(said.type()), `${file}: console: ${said.text()}`));
    page.on('pageerror', (error) => faults.push(`${file}: ${error}`));
    page.on('request', (request) => check(/^(file|data):/.test(request.url()), `${file}: request ${request.url()}`));
    const began = performance.now();
    await page.goto(pathToFileURL(file).href);
    await page.locator('#count').waitFor();
    const loaded = performance.now() - began;
    const attempts = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent).attempts);
    check((await counted(page)).startsWith(`${attempts.length} of ${attempts.length}`), `${file}: count`);
    const failed = attempts.filter((each) => each.verdict === 'fail').length;
    const filtered = await page.evaluate(async () => {
      const select = document.getElementById('f-verdict');
      const before = performance.now();
      select.value = 'fail';
      select.dispatchEvent(new Event('change', { bubbles: true }));
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      return performance.now() - before;
    });
    if (failed) check((await counted(page)).startsWith(`${failed} of`), `${file}: filter`);
    // Every kind of attempt, and not all of two thousand.
    const step = Math.max(1, Math.floor(attempts.length / 60));
    for (let index = 0; index < attempts.length; index += step) {
      await page.evaluate((to) => { location.hash = `#/attempt/${to}`; }, index);
      await page.waitForFunction((name) => document.querySelector('#attempt h1')?.textContent.includes(name), attempts[index].case);
      check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${file}: attempt ${index} scrolls sideways`);
      check(await page.evaluate(() => document.activeElement?.tagName === 'H1'), `${file}: attempt ${index} has no focus on its heading`);
    }
    check(await page.evaluate(() => document.querySelectorAll('#attempt img, #attempt iframe, #attempt script').length === 0), `${file}: foreign elements`);
    await page.setViewportSize({ width: 390, height: 800 });
    await page.evaluate(() => { location.hash = '#/'; });
    await page.waitForTimeout(200);
    check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${file}: scrolls sideways on a phone`);
    console.log(`${file} (${colorScheme}): ${attempts.length} attempts, shown after ${loaded.toFixed(0)} ms, filtered in ${filtered.toFixed(0)} ms`);
    await context.close();
  }
}
await browser.close();
faults.forEach((fault) => console.error(fault));
process.exit(faults.length ? 1 : 0);
